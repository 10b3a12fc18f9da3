"""scripts/check_wheel.py refuses what would not run elsewhere: shown on wheels made of this build, which is linked with what this machine has."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

SOURCE = os.path.abspath(os.environ.get("MILLPOND_SOURCE_DIR", "."))
BUILD = os.path.abspath(os.environ.get("MILLPOND_BUILD_DIR", "build"))
sys.path.insert(0, os.path.join(SOURCE, "scripts"))
import check_wheel  # noqa: E402

GOOD = "millpond-0.1.0-py3-none-manylinux_2_34_x86_64.whl"


class CheckWheel(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="millpond-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def wheel(self, files, name=GOOD):
        """A wheel of all that is wanted, with these files in the place of empty ones; None leaves one out."""
        contents = dict.fromkeys(check_wheel.WANTED, b"")
        contents.update({"millpond-0.1.0.data/data/" + path: b"" for path in check_wheel.DATA})
        contents.update(files)
        path = os.path.join(self.folder, name)
        with zipfile.ZipFile(path, "w") as wheel:
            for inner, data in contents.items():
                if data is not None:
                    wheel.writestr(inner, data)
        return path

    def binaries(self, **others):
        probe = self.linked("probe", "-shared")
        return {**dict.fromkeys(check_wheel.BINARIES, probe), **others}

    def linked(self, name, *options, source="int answer(void) { return 42; }"):
        path = os.path.join(self.folder, name)
        subprocess.run([shutil.which("c++"), "-x", "c", "-", "-fPIC", "-s", "-o", path, *options], input=source.encode(), check=True)
        with open(path, "rb") as file:
            return file.read()

    def test_a_wheel_of_what_is_wanted_has_no_fault(self):
        self.assertEqual(check_wheel.faults_of_wheel(self.wheel(self.binaries())), [])

    def test_the_program_of_an_ordinary_build_is_refused_for_each_library_it_needs(self):
        faults = "\n".join(check_wheel.faults_of_binary(os.path.join(BUILD, "bin/millpond"), "the program"))
        self.assertIn("the program needs libstdc++.so.6, which may not be there", faults)
        self.assertIn("the program needs libsqlite3.so.0", faults)
        self.assertNotIn("libc.so.6", faults)
        self.assertIn("the program is not stripped", faults)

    def test_the_program_calls_nothing_newer_than_the_tag_where_the_wheel_is_made(self):
        if os.confstr("CS_GNU_LIBC_VERSION").split()[1] > "2.36":
            self.skipTest("wheels are made on Debian 12; a newer C library gives its programs newer names")
        faults = check_wheel.faults_of_binary(os.path.join(BUILD, "bin/millpond"), "the program")
        self.assertEqual([fault for fault in faults if "which glibc has since" in fault], [])

    def test_a_function_newer_than_the_tag_is_named(self):
        if os.confstr("CS_GNU_LIBC_VERSION").split()[1] < "2.36":
            self.skipTest("this C library has nothing newer")
        newer = self.linked("newer", "-shared", source="unsigned arc4random(void); unsigned number(void) { return arc4random(); }")
        faults = check_wheel.faults_of_wheel(self.wheel(self.binaries(**{"millpond/libmillpond_probe.so": newer})))
        self.assertEqual(faults, ["millpond/libmillpond_probe.so calls arc4random, which glibc has since 2.36 only; the tag promises 2.34"])

    def test_the_probe_brings_its_unwinder_and_asks_the_c_library_for_nothing_new_because_of_it(self):
        for name in ("probe", "count", "lines"):
            faults = check_wheel.faults_of_binary(os.path.join(BUILD, "lib/millpond/libmillpond_%s.so" % name), name)
            self.assertEqual([fault for fault in faults if "needs" in fault or "_dl_find_object" in fault], [])

    def test_a_page_of_text_only_a_missing_file_a_wrong_tag_and_too_many_bytes_are_refused(self):
        files = self.binaries(**{"millpond/_command.py": None, "millpond/__pycache__/x.pyc": b""})
        files["millpond/millpond"] += b"<!-- millpond:text-only -->"
        files["millpond-0.1.0.data/data/share/man/man1/millpond.1"] = None
        files["millpond/large"] = os.urandom(15_000_001)
        faults = "\n".join(check_wheel.faults_of_wheel(self.wheel(files, "millpond-0.1.0-py3-none-linux_x86_64.whl")))
        for words in ("millpond/_command.py is not in the wheel", "share/man/man1/millpond.1 is not in the wheel", "x.pyc does not belong", "has text only",
                      "its tag is to be py3-none-manylinux_2_34_x86_64", "MB; at most 15 MB are allowed"):
            self.assertIn(words, faults)


if __name__ == "__main__":
    unittest.main()
