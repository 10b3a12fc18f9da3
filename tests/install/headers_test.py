"""Public headers stand alone, and are silent in a program that is compiled more strictly than ours, by g++ and by clang."""

import os
import pathlib
import shutil
import subprocess
import sys
import unittest

INCLUDE = pathlib.Path(os.environ["MILLPOND_SOURCE_DIR"]) / "include"
HEADERS = sorted(str(path.relative_to(INCLUDE)) for path in INCLUDE.rglob("*.h"))
STRICT = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]


def complaints(compiler, headers):
    text = "".join("#include <%s>\n" % header for header in headers) + "int main() {}\n"
    done = subprocess.run([compiler, *STRICT, "-fsyntax-only", "-I", str(INCLUDE), "-x", "c++", "-"], input=text, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    return done.stdout if done.returncode or done.stdout else ""


class Headers(unittest.TestCase):
    def test_each_header_needs_no_other_before_it(self):
        self.assertGreater(len(HEADERS), 10)
        for header in HEADERS:
            with self.subTest(header):
                self.assertEqual(complaints(COMPILER, [header]), "")

    def test_all_of_them_are_silent_under_strict_warnings_by_both_compilers(self):
        for compiler in ("g++", "clang++"):
            with self.subTest(compiler):
                if shutil.which(compiler) is None:
                    self.skipTest("no %s here" % compiler)
                self.assertEqual(complaints(compiler, HEADERS), "")


if __name__ == "__main__":
    COMPILER = sys.argv.pop(1)
    unittest.main(verbosity=2)
