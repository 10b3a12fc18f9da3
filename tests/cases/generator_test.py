#!/usr/bin/env python3
"""The generator: the same seed gives the same bytes, every program compiles with every Python it may be run by, nothing in a program tells its truth, and the truth is
what the system measures.

  generator_test.py [--measure 20]   so many programs are run bare"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import bare
from environments import interpreter
from generate import write
from generator import make, truth
from generator.items import FLOAT, PLAIN, RECORD, ROW, SLOTS
from generator.noise import Level
from generator.program import PYTHONS

HERE = os.path.dirname(os.path.abspath(__file__))
MEASURE = 4
SAMPLE = [make("test", number) for number in range(400)]

WEIGH = """
import os, random, sys
class Plain:
    def __init__(self, a, b, c): self.a, self.b, self.c = a, b, c
class Slots:
    __slots__ = ("a", "b", "c")
    def __init__(self, a, b, c): self.a, self.b, self.c = a, b, c
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
makers = {"float": lambda i: random.random(), "record": lambda i: {"a": i + 100000, "b": random.random(), "c": "row-%07d" % i}, "plain": lambda i: Plain(i + 100000, random.random(), "row-%07d" % i),
          "slots": lambda i: Slots(i + 100000, random.random(), "row-%07d" % i), "row": lambda i: (i + 100000, random.random(), "row-%07d" % i)}
make, count = makers[sys.argv[1]], 100000
kept = [0] * count
before = resident()
for i in range(count):
    kept[i] = make(i)
print((resident() - before) / count)
"""


class GeneratorTest(unittest.TestCase):
    def test_the_same_seed_gives_the_same_bytes_in_every_python(self):
        text = "import sys; sys.path.insert(0, sys.argv[1]); from generator import make; import hashlib, json\n" \
               "print(hashlib.sha256(json.dumps([[p.files, p.truth] for p in (make('bytes', n) for n in range(40))], sort_keys=True).encode()).hexdigest())"
        found = {}
        for name, salt in [(name, "0") for name in PYTHONS] + [(PYTHONS[-1], "7")]:
            if interpreter(name):
                done = subprocess.run([interpreter(name), "-c", text, HERE], stdout=subprocess.PIPE, text=True, env=dict(os.environ, PYTHONHASHSEED=salt), check=True)
                found.setdefault(done.stdout, []).append(name)
        self.assertLessEqual(len(found), 1, found)

    def test_another_seed_or_number_gives_another_program(self):
        self.assertEqual(len({json.dumps(make(seed, number).files) for seed in ("a", "b") for number in range(5)}), 10)

    def test_every_program_compiles_with_every_python_that_may_run_it(self):
        with tempfile.TemporaryDirectory() as folder:
            for program in SAMPLE:
                write(folder, program)
            for name in PYTHONS:
                if interpreter(name):
                    done = subprocess.run([interpreter(name), "-W", "error::SyntaxWarning", "-m", "compileall", "-q", "-f", folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                    self.assertEqual(done.returncode, 0, f"Python {name}: {done.stdout[:2000]}")

    def test_nothing_in_a_program_tells_its_truth(self):
        for program in SAMPLE:
            for name, text in program.files.items():
                self.assertIsNone(re.search(r"#@|[«»§$]|\bITEM\b|(?i:\bleak|\bblame|\bborn\b|\bgrow)", text), f"{program.name}/{name}")

    def test_the_lines_of_the_truth_are_lines_of_the_program(self):
        for program in SAMPLE:
            for leak in program.truth["leaks"]:
                self.assertTrue(leak["blame"] and leak["born"], (program.name, leak))
                for line in leak["blame"] + leak["born"]:
                    text = program.files[line["file"]].split("\n")[line["line"] - 1]
                    self.assertTrue(text.strip() and not text.strip().startswith(("import", "from")), (program.name, line, text))

    def test_growth_in_each_of_the_last_five_rounds_without_a_bound_is_a_leak_and_nothing_else_is(self):
        leak = {"still": True, "late": False, "stop_round": 40, "total_bytes": 9e7}
        self.assertEqual(truth.verdicts([leak], [], 40)[0], {"kind": "leak", "accepted": ["leak"]})
        self.assertEqual(truth.verdicts([dict(leak, late=True)], [], 40)[0]["accepted"], ["leak", "unsure"])
        ended = truth.verdicts([dict(leak, still=False, stop_round=30)], [], 40)[0]
        self.assertEqual((ended["kind"], ended["accepted"]), ("cache", ["cache", "reserve"]))
        filling = truth.verdicts([], [Level("cache", ("cache", "reserve", "unsure"), 5e7, 60, True)], 40)[0]
        self.assertEqual((filling["kind"], filling["accepted"]), ("cache", ["cache", "reserve", "unsure"]))
        self.assertEqual(truth.verdicts([], [], 40)[0], {"kind": "flat", "accepted": ["flat", "reserve"]})

    def test_small_objects_weigh_what_the_truth_says(self):
        for name in PYTHONS:
            for kind, expected in (("float", FLOAT), ("record", RECORD[name]), ("plain", PLAIN[name]), ("slots", SLOTS), ("row", ROW)):
                if interpreter(name):
                    found = float(subprocess.run([interpreter(name), "-c", WEIGH, kind], stdout=subprocess.PIPE, text=True, check=True).stdout)
                    self.assertLess(abs(found - expected), 0.07 * expected + 4, f"{kind} in Python {name}")

    def test_the_system_measures_what_the_truth_says(self):
        quick = MEASURE <= 5
        with tempfile.TemporaryDirectory() as folder:
            for number in range(MEASURE):
                program = make("measured", number, quick)
                write(folder, program)
                name, told, answer, problem = bare.check(folder, program.name)
                if answer is not None:
                    print(name, told["kind"], told["process"], [leak["holder"]["kind"] for leak in told["leaks"]], answer, problem or "ok", flush=True)
                    self.assertEqual(problem, "", f"{name} of seed measured")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--measure", type=int, default=MEASURE)
    MEASURE = options.parse_known_args()[0].measure
    unittest.main(argv=[sys.argv[0], *options.parse_known_args()[1]])
