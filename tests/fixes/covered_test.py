"""Every cause of the doctor has a program whose fix is tried, or a reason why it has none."""
import glob
import os
import re
import unittest

from cases import CASES, WITHOUT

CAUSES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "verdict", "causes", "*.cc")


class Covered(unittest.TestCase):
    def test_each_cause_has_a_case_or_a_reason_and_not_both(self):
        ids = set()
        for path in glob.glob(CAUSES):
            with open(path) as file:
                ids.update(re.findall(r'\{\.id = "(\w+)"', file.read()))
        tried = {cause for case in CASES for cause in case.causes}
        self.assertGreater(len(ids), 30)
        self.assertEqual(sorted(ids - tried - set(WITHOUT)), [], "neither a case nor a reason in tests/fixes/cases.py")
        self.assertEqual(sorted((tried | set(WITHOUT)) - ids), [], "no such cause")
        self.assertEqual(sorted(tried & set(WITHOUT)), [], "a case and a reason")


if __name__ == "__main__":
    unittest.main()
