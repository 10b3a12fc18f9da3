"""What docs/cpp.md and docs/loops.md show is out of programs that are compiled and run: each of its samples has its lines, in that order, in one of the examples."""
import os
import pathlib
import re
import unittest

ROOT = os.environ["MILLPOND_SOURCE_DIR"]


def words(line):
    return re.sub(r"\s+", "", line)


def has_in_order(sample, program):
    rest = iter(words(line) for line in program.splitlines())
    return all(any(line == found for found in rest) for line in map(words, sample.splitlines()) if line)


class Samples(unittest.TestCase):
    def test_each_sample_is_of_an_example(self):
        samples = []
        for name in ("cpp.md", "loops.md"):
            with open(os.path.join(ROOT, "docs", name)) as page:
                found = re.findall(r"```cpp\n(.*?)```", page.read(), re.S)
            self.assertGreater(len(found), 0)
            samples += found
        programs = [path.read_text() for path in pathlib.Path(ROOT, "examples").glob("*.cc")]
        for sample in samples:
            self.assertTrue(any(has_in_order(sample, program) for program in programs), "in no example:\n" + sample)

    def test_a_line_that_no_example_has_is_found(self):
        self.assertTrue(has_in_order("a();\nb();", "a();\nx();\n b();\n"))
        self.assertFalse(has_in_order("b();\na();", "a();\nb();\n"))


if __name__ == "__main__":
    unittest.main()
