"""@millpond.profile under every interpreter from 3.9 on that is here: profile_cases.py in each."""
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from support import INTERPRETERS, environment  # noqa: E402


class EveryInterpreter(unittest.TestCase):
    def test_all_cases(self):
        self.assertTrue(INTERPRETERS)
        for version, python in INTERPRETERS:
            with self.subTest(python=version):
                done = subprocess.run([python, os.path.join(HERE, "profile_cases.py")], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
                self.assertEqual(done.returncode, 0, done.stdout[-6000:])
                print("Python %s: %s" % (version, [line for line in done.stdout.splitlines() if line.startswith("Ran ")]))


if __name__ == "__main__":
    unittest.main()
