"""The installed Python package: the command, `python -m millpond`, the pytest plug-in, and what lies beside them.

MILLPOND_ENV names a virtual environment that has it. Without that a new one is made in a folder with spaces, of the sources and the build folder: by the package's own
build backend for what is Python, by `cmake --install` for the rest."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

SOURCE = os.path.abspath(os.environ.get("MILLPOND_SOURCE_DIR", "."))
BUILD = os.path.abspath(os.environ.get("MILLPOND_BUILD_DIR", "build"))
SKIPPED = 77  # for CTest
NEVER_NEEDED = {"MILLPOND", "MILLPOND_SOURCE_DIR", "MILLPOND_BUILD_DIR", "PYTHONPATH"}  # the package must do without

LEAK = """\
import time
kept = []
def keep(size):
    kept.append(b"x" * size)
for epoch in range(1, 13):
    keep(4_000_000)
    time.sleep(0.12)
    print("epoch", epoch, flush=True)
"""

env = os.environ.get("MILLPOND_ENV")
scratch = None


def clean():
    kept = {name: value for name, value in os.environ.items() if name not in NEVER_NEEDED}
    return dict(kept, NO_COLOR="1", PATH="/usr/bin:/bin")


def run(*words, code=0, **more):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", env=clean(), timeout=300, **more)
    if code is not None and done.returncode != code:
        raise AssertionError("%s\nended with %d, not %d\n%s\n%s" % (" ".join(map(str, words)), done.returncode, code, done.stdout, done.stderr))
    return done


def make_environment():
    """A virtual environment with the package, as pip would make it."""
    place = os.path.join(scratch, "an environment")
    run(sys.executable, "-m", "venv", place)
    python = os.path.join(place, "bin/python")
    # What is Python, with its entry points, by the build backend; without the program, which would be built anew.
    source = os.path.join(scratch, "the sources")
    os.mkdir(source)
    for name in ("pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE"):
        shutil.copy(os.path.join(SOURCE, name), source)
    shutil.copytree(os.path.join(SOURCE, "python"), os.path.join(source, "python"), ignore=shutil.ignore_patterns("__pycache__"))
    done = run(python, "-m", "pip", "install", "--disable-pip-version-check", "-q", "--config-settings=wheel.cmake=false", "--config-settings=wheel.platlib=true", source, "pytest", code=None)
    if done.returncode != 0 and re.search("Could not find a version|No matching distribution|ConnectionError|Network is unreachable", done.stderr):
        print("skipped: the package registry does not give scikit-build-core and pytest\n" + done.stderr)
        sys.exit(SKIPPED)
    if done.returncode != 0:
        raise AssertionError("pip install\n" + done.stderr)
    # What is not.
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))").stdout.strip()
    stage = os.path.join(scratch, "a stage")
    run(shutil.which("cmake") or "cmake", "--install", BUILD, "--component", "wheel", "--prefix", stage)
    shutil.copytree(os.path.join(stage, "millpond"), os.path.join(site, "millpond"), dirs_exist_ok=True)
    shutil.copytree(os.path.join(stage, "data"), place, dirs_exist_ok=True)
    return place


def setUpModule():
    global env, scratch
    scratch = tempfile.mkdtemp(prefix="millpond package ")
    if not env:
        env = make_environment()


def tearDownModule():
    shutil.rmtree(scratch, ignore_errors=True)


class Package(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="a folder ", dir=scratch)
        self.python = os.path.join(env, "bin/python")
        self.command = os.path.join(env, "bin/millpond")

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(textwrap.dedent(text))
        return path

    def python_says(self, text):
        return run(self.python, "-c", text, cwd=self.folder).stdout.strip()

    def watched(self, *words, text=LEAK):
        self.write("program.py", text)
        run(*words, "watch", "--json", "result.json", "--", self.python, "program.py", cwd=self.folder)
        with open(os.path.join(self.folder, "result.json")) as file:
            return json.load(file)

    def assert_the_leak_is_found(self, found):
        self.assertEqual(found["verdict"], "leak", found.get("sentence"))
        blame = found["findings"][0]["blame"]
        self.assertEqual((os.path.basename(blame["file"]), blame["line"]), ("program.py", 4))

    def test_the_command_and_the_module_are_the_program(self):
        version = run(self.command, "--version").stdout
        self.assertRegex(version, r"^millpond \d+\.\d+\.\d+\n$")
        self.assertEqual(run(self.python, "-m", "millpond", "--version").stdout, version)
        self.assertEqual(self.python_says("import importlib.metadata; print(importlib.metadata.version('millpond'))"), version.split()[1])
        self.assertIn("millpond watch", run(self.command, code=2).stderr + run(self.command, "--help").stdout)

    def test_arguments_streams_and_exit_codes_are_those_of_the_program(self):
        done = run(self.command, "watch", "--quiet", "--", "sh", "-c", 'cat; echo "$1" >&2; exit 7', "sh", "a  word", input="from outside", cwd=self.folder, code=7)
        self.assertEqual(done.stdout, "from outside")
        self.assertIn("a  word\n", done.stderr)

    def test_a_leak_is_found_with_its_line_by_the_command_and_by_the_module(self):
        self.assert_the_leak_is_found(self.watched(self.command))
        self.assert_the_leak_is_found(self.watched(self.python, "-m", "millpond"))

    def test_a_leak_is_found_from_inside_and_a_function_is_told_line_by_line(self):
        script = self.write("inside.py", """\
            import millpond
            kept = []
            def keep(size):
                kept.append(b"x" * size)
            with millpond.watch() as w:
                for epoch in w.rounds(range(12), "epoch"):
                    keep(4_000_000)
            found = w.report()
            print(found.verdict, found.findings[0].line)
            @millpond.profile
            def load():
                block = b"y" * 3_000_000
                return len(block)
            load()
            """)
        done = run(self.python, script, cwd=self.folder)
        self.assertTrue(done.stdout.startswith("leak 4\n"), done.stdout + done.stderr)
        self.assertRegex(done.stdout + done.stderr, r'2\.\d+ MiB.*block = b"y"')

    def test_nothing_is_left_in_shared_memory(self):
        before = {name for name in os.listdir("/dev/shm") if name.startswith("millpond-")}
        self.write("program.py", "print(1)")
        done = run(self.command, "watch", "--json", "result.json", "--", self.python, "program.py", cwd=self.folder)
        self.assertNotIn("ld.so", done.stderr)
        left = {name for name in os.listdir("/dev/shm") if name.startswith("millpond-")} - before
        self.assertFalse([name for name in left if "libmillpond_probe.so" in os.listdir(os.path.join("/dev/shm", name))])

    def test_allocations_are_counted(self):
        run(self.command, "train", "tiny", "--synthetic", "--epochs", 2, "--count-allocations", "--json", "result.json", cwd=self.folder)
        with open(os.path.join(self.folder, "result.json")) as file:
            self.assertIn("allocations", file.read())

    def test_manual_and_completions_lie_where_they_are_looked_for(self):
        with open(os.path.join(env, "share/man/man1/millpond.1")) as file:
            manual = file.read()
        self.assertTrue(manual.startswith(".TH MILLPOND 1"))
        for command in ("train", "watch", "check", "report"):
            self.assertIn(".SS millpond %s\n" % command, manual)
            for option in re.findall(r"(?m)^ +(?:-\w,)?(--[a-z-]+)", run(self.command, command, "--help").stdout):
                self.assertIn(option.replace("-", "\\-"), manual)
        for shell, name in (("bash", "bash-completion/completions/millpond"), ("zsh", "zsh/site-functions/_millpond"), ("fish", "fish/vendor_completions.d/millpond.fish")):
            with open(os.path.join(env, "share", name)) as file:
                self.assertEqual(file.read(), run(self.command, "completion", shell).stdout)

    def test_importing_the_package_imports_neither_pytest_nor_the_agent(self):
        self.assertEqual(self.python_says("import millpond, sys; print([m for m in ('pytest', '_pytest', 'millpond_agent') if m in sys.modules])"), "[]")

    def test_the_pytest_plug_in_comes_with_the_package_and_needs_nothing_on_path(self):
        points = self.python_says("import importlib.metadata as m; print([p.value for p in m.distribution('millpond').entry_points if p.group == 'pytest11'])")
        self.assertEqual(points, "['millpond.pytest_plugin']")
        if run(self.python, "-c", "import pytest", code=None).returncode != 0:
            self.skipTest("no pytest in this environment")
        self.assertIn("@pytest.mark.memory", run(self.python, "-m", "pytest", "--markers", cwd=self.folder).stdout)
        self.write("test_leak.py", """\
            import pytest
            kept = []
            @pytest.mark.memory(max_growth="1 MB/call", repeat=12)
            def test_leaks():
                kept.append(b"x" * 4_000_000)
            """)
        done = run(self.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_leak.py", cwd=self.folder, code=1)
        self.assertIn("1 failed", done.stdout)
        self.assertIn("test_leak.py:5", done.stdout)

    def test_a_package_without_its_program_says_what_to_do(self):
        site = self.python_says("import millpond; print(millpond.__path__[0])")
        lone = os.path.join(self.folder, "millpond")
        shutil.copytree(site, lone, ignore=shutil.ignore_patterns("millpond", "*.so", "inject"))
        done = run(self.python, "-m", "millpond", "--version", cwd=self.folder, code=1)
        self.assertRegex(done.stderr, "^millpond: the program is not in .*; install the package again")


class AwkwardFolders(unittest.TestCase):
    """The program alone, moved to where the words of LD_PRELOAD and PYTHONPATH end."""

    def test_a_leak_is_found_by_a_program_in_a_folder_with_colon_and_space(self):
        home = os.path.join(scratch, "one: two")
        package = run(os.path.join(env, "bin/python"), "-c", "import millpond._command as c; print(c.folder())").stdout.strip()
        shutil.copytree(package, home)
        with open(os.path.join(scratch, "program.py"), "w") as file:
            file.write(LEAK)
        run(os.path.join(home, "millpond"), "watch", "--json", "result.json", "--", os.path.join(env, "bin/python"), "program.py", cwd=scratch)
        with open(os.path.join(scratch, "result.json")) as file:
            found = json.load(file)
        self.assertEqual(found["verdict"], "leak", found.get("sentence"))
        self.assertEqual(found["findings"][0]["blame"]["line"], 4)


if __name__ == "__main__":
    unittest.main(verbosity=1)
