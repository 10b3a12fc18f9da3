"""run_test.py SCRIPT [ARGUMENT ...]: runs a test script as Python does, and says at the end what was skipped inside: CTest sees one test that passed.

Each is a line "skipped inside: TEST: REASON", and one in the file that MILLPOND_SKIPPED names (scripts/check.sh collects them), with the test's name in CTest (MILLPOND_TEST) before it."""
import atexit
import os
import runpy
import sys
import unittest

_skipped = []


def note(test, reason):
    line = "%s: %s" % (test, " ".join(str(reason).split()))
    if line not in _skipped:
        _skipped.append(line)


def _tell():
    for line in _skipped:
        print("skipped inside: " + line, flush=True)
    place = os.environ.get("MILLPOND_SKIPPED")
    if place and _skipped:
        with open(place, "a") as file:
            file.write("".join("%s: %s\n" % (os.environ.get("MILLPOND_TEST", os.path.basename(sys.argv[0])), line) for line in _skipped))


def _listen():
    add = unittest.TestResult.addSkip

    def add_skip(self, test, reason):
        note(test.id().replace("__main__.", "").replace("setUpClass ", ""), reason)
        add(self, test, reason)

    unittest.TestResult.addSkip = add_skip


if __name__ == "__main__":
    sys.modules["run_test"] = sys.modules["__main__"]  # for pythons.py, which notes what is not here
    atexit.register(_tell)
    _listen()
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
