"""A command that the program does not have, made of one file: it runs, and help, completion, manual and refusals know of it."""
import os
import re
import subprocess
import unittest

PROGRAM = os.path.join(os.environ["MILLPOND_BUILD_DIR"], "tests", "millpond_new_command")
GOLDEN = os.path.join(os.environ["MILLPOND_SOURCE_DIR"], "tests", "new_command", "golden.txt")


def says(*words):
    done = subprocess.run([PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout


class NewCommand(unittest.TestCase):
    def test_it_says_what_its_golden_file_says(self):
        with open(GOLDEN) as file:
            golden = file.read()
        commands = re.findall(r"(?m)^\$ millpond (.*)$", golden)
        self.assertGreaterEqual(len(commands), 2)
        self.assertEqual("".join(f"$ millpond {command}\n{says(*command.split())}" for command in commands), golden)

    def test_help_lists_it_in_its_place_and_all_others_in_theirs(self):
        listed = re.findall(r"(?m)^  ([a-z]+) {2,}[A-Z]", says("--help"))
        self.assertEqual(listed, ["train", "plan", "evaluate", "predict", "greet", "watch", "check", "bisect", "report", "fix", "info", "completion"])

    def test_completion_and_manual_know_it_and_offer_it_no_models(self):
        for shell in ("bash", "zsh", "fish"):
            self.assertIn("greet", says("completion", shell))
        self.assertNotRegex(says("completion", "fish"), "from greet.*mlp_small")
        self.assertIn(".SS millpond greet", says("manual"))


if __name__ == "__main__":
    unittest.main()
