"""@pytest.mark.memory: a marked test is repeated by itself until it can be told whether it leaks, and the line that is named is its own."""
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from support import environment  # noqa: E402

TESTS = """
import pytest

KEPT = []
CALLS = []

@pytest.mark.memory
def test_keeps_without_saying_how_often():
    KEPT.append(bytearray(b"x") * 30_000_000)  # the line

@pytest.mark.memory(max_growth="100 kB/call")
def test_flat():
    CALLS.append(1)
    assert len(b"x" * 2_000_000) == 2_000_000
    if len(CALLS) > 30:
        raise AssertionError("called %d times" % len(CALLS))

@pytest.mark.memory(max_peak="2 GB")
def test_only_the_peak_is_asked():
    CALLS.append(1)
    assert len(CALLS) == 1

@pytest.mark.memory(repeat=3, allow_unsure=True)
def test_as_often_as_it_says():
    CALLS.append(1)
    assert len(CALLS) <= 3

def test_that_never_runs_with_the_others():
    for _ in range(2):
        KEPT.append(None)
"""

UNSURE = """
import pytest

@pytest.mark.memory
def test_unsure():
    pass

@pytest.mark.memory(allow_unsure=True)
def test_allowed():
    pass

@pytest.mark.memory(max_peak="1 GB")
def test_peak():
    pass

@pytest.mark.memory
def test_fails_by_itself():
    assert 1 == 2
"""

SLOW = """
import time
import pytest

@pytest.mark.memory
def test_slow():
    time.sleep(0.6)
"""

# A program that runs what it is given and is unsure.
DOUBTER = """#!%s
import json, subprocess, sys
words = sys.argv[1:]
with open(words[words.index("--json") + 1], "w") as file:
    json.dump({"verdict": "unsure", "sentence": "It may be a leak.", "findings": []}, file)
code = subprocess.run(words[words.index("--") + 1:]).returncode
sys.exit(3 if code else 4)
"""

# The same of a whole run, of which it is asked for no JSON.
DOUBTER_OF_ALL = """#!%s
import subprocess, sys
code = subprocess.run(sys.argv[sys.argv.index("--") + 1:]).returncode
sys.exit(3 if code else 4)
"""


class Mark(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="millpond pytest ")
        self.addCleanup(shutil.rmtree, self.folder)

    def pytest(self, text, *words, **more):
        with open(os.path.join(self.folder, "test_memory.py"), "w") as file:
            file.write(text)
        return subprocess.run([sys.executable, "-m", "pytest", "-p", "millpond.pytest_plugin", "-p", "no:cacheprovider", "-rA", *words], cwd=self.folder, env=environment(**more),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)

    def outcome(self, done, name):
        found = re.search(r"(?m)^(PASSED|FAILED|ERROR|SKIPPED) test_memory.py::%s\b" % name, done.stdout)
        return found.group(1) if found else done.stdout

    def test_a_leak_is_told_without_repeat_and_at_its_own_line(self):
        done = self.pytest(TESTS)
        line = 1 + TESTS.splitlines().index('    KEPT.append(bytearray(b"x") * 30_000_000)  # the line')
        self.assertEqual(self.outcome(done, "test_keeps_without_saying_how_often"), "FAILED")
        self.assertRegex(done.stdout, r"test_memory\.py:%d in test_keeps_without_saying_how_often" % line)
        self.assertRegex(done.stdout, r"Memory grows by (2[789]|30)\.\d MiB every call")
        self.assertNotIn("in test_that_never_runs", done.stdout)
        for name in ("test_flat", "test_only_the_peak_is_asked", "test_as_often_as_it_says", "test_that_never_runs_with_the_others"):
            self.assertEqual(self.outcome(done, name), "PASSED")
        self.assertEqual(sorted(os.listdir(self.folder)), ["test_memory.py"] if "__pycache__" not in os.listdir(self.folder) else ["__pycache__", "test_memory.py"])

    def test_a_slow_test_is_repeated_until_the_time_is_up_and_then_it_is_unsure(self):
        # The 60 seconds are made 1 in the process that repeats: conftest.py is read there too.
        with open(os.path.join(self.folder, "conftest.py"), "w") as file:
            file.write("from millpond import pytest_plugin\nassert pytest_plugin.kSeconds == 60.0\npytest_plugin.kSeconds = 1.0\n")
        done = self.pytest(SLOW)
        self.assertEqual(self.outcome(done, "test_slow"), "FAILED")
        self.assertRegex(done.stdout, r"memory: after [23] calls it cannot be told whether it grows")

    def test_what_cannot_be_told_fails_with_a_sentence_unless_allowed(self):
        doubter = os.path.join(self.folder, "millpond")
        with open(doubter, "w") as file:
            file.write(DOUBTER % sys.executable)
        os.chmod(doubter, stat.S_IRWXU)
        done = self.pytest(UNSURE, MILLPOND=doubter)
        self.assertEqual(self.outcome(done, "test_unsure"), "FAILED")
        self.assertIn("memory: after 30 calls it cannot be told whether it grows; make the test quicker, say repeat=..., or allow_unsure=True", done.stdout)
        self.assertIn("It may be a leak.", done.stdout)
        self.assertEqual([self.outcome(done, name) for name in ("test_allowed", "test_peak", "test_fails_by_itself")], ["PASSED", "PASSED", "FAILED"])
        self.assertIn("assert 1 == 2", done.stdout)

    def test_a_whole_run_that_cannot_be_told_fails_unless_allowed(self):
        doubter = os.path.join(self.folder, "millpond")
        with open(doubter, "w") as file:
            file.write(DOUBTER_OF_ALL % sys.executable)
        os.chmod(doubter, stat.S_IRWXU)
        for words, code in (((), 1), (("--millpond-allow-unsure",), 0)):
            done = self.pytest("def test_nothing(): pass\n", "--millpond", *words, MILLPOND=doubter)
            self.assertEqual(done.returncode, code, done.stdout)
            self.assertEqual(self.outcome(done, "test_nothing"), "PASSED")


if __name__ == "__main__":
    unittest.main()
