"""millpond fix: the change is shown, made once, in the file that was named and in no other. And programs without a file have lines too."""

import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest

MILLPOND = os.environ["MILLPOND"]
PROGRAM = """import time

kept = []
for epoch in range(24):
    for _ in range(5):
        kept.append(bytearray(400_000))  # `all` of them
        time.sleep(0.002)
    print("epoch", epoch, flush=True)
"""


def millpond(*words, folder, code=0, **more):
    done = subprocess.run([MILLPOND, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    if done.returncode != code:
        raise AssertionError(f"millpond {' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout, done.stderr


class Fix(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.folder = cls.kept.name
        cls.program = os.path.join(cls.folder, "train.py")
        with open(cls.program, "w") as file:
            file.write(PROGRAM)
        millpond("watch", "--quiet", "-o", "run.pond", "--json", "result.json", "--", sys.executable, "train.py", folder=cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()

    def setUp(self):
        with open(self.program, "w") as file:
            file.write(PROGRAM)

    def text(self, path=None):
        with open(path or self.program) as file:
            return file.read()

    def test_without_a_file_it_is_told_in_words_and_nothing_is_changed(self):
        out, _ = millpond("fix", "run.pond", folder=self.folder)
        self.assertIn("del kept[:-5]", out)
        self.assertIn("millpond fix run.pond train.py", out)
        self.assertEqual(self.text(), PROGRAM)

    def test_with_a_file_it_is_a_diff(self):
        out, _ = millpond("fix", "run.pond", "train.py", folder=self.folder)
        self.assertIn("+        del kept[:-5]\n", out)
        self.assertIn("         kept.append(bytearray(400_000))  # `all` of them\n", out)
        self.assertEqual(self.text(), PROGRAM)

    def test_it_is_made_once_and_keeps_permissions(self):
        os.chmod(self.program, 0o750)
        millpond("fix", "run.pond", "train.py", "--apply", folder=self.folder)
        changed = PROGRAM.replace("of them\n", "of them\n        del kept[:-5]\n")
        self.assertEqual(self.text(), changed)
        self.assertEqual(stat.S_IMODE(os.stat(self.program).st_mode), 0o750)
        _, err = millpond("fix", "run.pond", "train.py", "--apply", folder=self.folder, code=1)
        self.assertIn("not what it was when the program ran", err)
        self.assertEqual(self.text(), changed)

    def test_a_file_that_changed_anywhere_is_left_alone(self):
        with open(self.program, "a") as file:
            file.write("print('later')\n")
        for more in ((), ("--apply",)):
            _, err = millpond("fix", "run.pond", "train.py", *more, folder=self.folder, code=1)
            self.assertIn("watch the program again", err)
        self.assertTrue(self.text().endswith("print('later')\n"))

    def test_only_the_file_that_is_named_is_touched(self):
        copy = os.path.join(self.folder, "copy.py")
        with open(copy, "w") as file:
            file.write(PROGRAM)
        millpond("fix", "run.pond", "copy.py", "--apply", folder=self.folder)
        self.assertIn("del kept[:-5]", self.text(copy))
        self.assertEqual(self.text(), PROGRAM)
        with open(copy, "w") as file:
            file.write("print(1)\n")
        _, err = millpond("fix", "run.pond", "copy.py", "--apply", folder=self.folder, code=2)
        self.assertIn("the fix is for train.py", err)
        millpond("fix", "run.pond", "--apply", folder=self.folder, code=2)
        millpond("fix", "run.pond", "missing.py", folder=self.folder, code=1)

    def test_the_words_quote_code_with_backticks_in_longer_ones(self):
        with open(os.path.join(self.folder, "result.json")) as file:
            finding = json.load(file)["findings"][0]
        self.assertIn("`kept.append(bytearray(400_000))`", finding["fix"])
        self.assertEqual(finding["fix_change"]["kind"], "edit")
        self.assertEqual(finding["fix_change"]["edits"][0]["line"], 6)
        self.assertEqual(finding["fix_change"]["edits"][0]["old"], "        kept.append(bytearray(400_000))  # `all` of them")


class WithoutAFile(unittest.TestCase):
    def test_a_program_given_with_c_is_blamed_by_its_line(self):
        with tempfile.TemporaryDirectory() as folder:
            millpond("watch", "--quiet", "-o", "run.pond", "--json", "result.json", "--", sys.executable, "-c", PROGRAM, folder=folder)
            with open(os.path.join(folder, "result.json")) as file:
                result = json.load(file)
            finding = result["findings"][0]
            self.assertEqual((finding["blame"]["file"], finding["blame"]["line"]), ("<string>", 6))
            self.assertIn("the program given with -c, line 6", result["sentence"])
            self.assertIsNone(finding["fix_change"])
            self.assertNotIn(":0", finding["fix"] + result["sentence"])

    def test_a_program_from_standard_input_has_no_line_of_another(self):
        with tempfile.TemporaryDirectory() as folder:
            millpond("watch", "--quiet", "-o", "run.pond", "--json", "result.json", "--", sys.executable, "-", folder=folder, input=PROGRAM)
            with open(os.path.join(folder, "result.json")) as file:
                result = json.load(file)
            self.assertEqual(result["verdict"], "leak")
            self.assertNotIn(":0", result["sentence"])
            self.assertNotIn("at  ", result["sentence"])
            self.assertIn("standard input, line", result["sentence"])


if __name__ == "__main__":
    unittest.main()
