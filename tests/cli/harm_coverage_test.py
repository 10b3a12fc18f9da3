"""coverage reports of a watched program what it reports without us: lines, branches and contexts, with each of its tracers."""
import json
import os
import sys
import unittest

import coverage
from harm import PYTHON, Harm
from program import SANITIZED


class Coverage(Harm):
    PROGRAM = """\
        import sys, threading, time
        from model import Model
        def batches(n):
            for i in range(n):
                yield [float(i)] * 200
        def train(model, epochs):
            last = None
            for epoch in range(epochs):
                for batch in batches(5):
                    last = model.step(batch)
                    if last < 0:
                        raise ValueError("never")
                print("epoch", epoch, flush=True)
                time.sleep(0.03)
            return last
        def main():
            model = Model()
            other = threading.Thread(target=lambda: [model.step([1.0] * 50) for _ in range(20)])
            other.start()
            train(model, 16)
            other.join()
            try:
                model.fail(3)
            except KeyError as error:
                print("caught", error)
            print(len(model.seen), sorted(vars(model)), model.count)
            return 3
        sys.exit(main())
        """
    MODEL = """\
        class Model:
            def __init__(self):
                self.seen, self.count = [], 0
            def step(self, batch):
                value = sum(batch)
                self.seen.append(bytes(20000))
                self.count += 1
                return value
            def fail(self, depth):
                if depth:
                    return self.fail(depth - 1)
                raise KeyError("deep")
            def unused(self):
                return 1
        """

    def seen_by_coverage(self, options, core, watched):
        """What it saw, without when; and what the program printed and ended with."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
        if core:
            environment["COVERAGE_CORE"] = core
        command = [PYTHON, "-m", "coverage", "run", "--data-file=data", *options, "program.py"]
        done = self.watch(*command, env=environment, options=watched)[0] if watched is not None else self.run_bare(*command, env=environment)
        told = self.run_bare(PYTHON, "-m", "coverage", "json", "--data-file=data", "--show-contexts", "-o", "coverage.json", "-q")
        self.assertEqual(told.returncode, 0, told.stdout + told.stderr + done.stderr)
        with open(self.path("coverage.json")) as file:
            seen = json.load(file)
        seen["meta"].pop("timestamp")
        os.unlink(self.path("data"))
        self.assertNotIn("Coverage", done.stderr)  # nor does it warn
        return seen, done.stdout, done.returncode

    def test_each_tracer_sees_what_it_sees_without_us(self):
        self.write("program.py", self.PROGRAM)
        self.write("model.py", self.MODEL)
        cases = [("in C", [], "ctrace"), ("in Python", ["--timid"], None), ("in Python", [], "pytrace"), ("in C, branches", ["--branch"], "ctrace"), ("sys.monitoring", [], "sysmon")]
        for name, options, core in cases:
            with self.subTest("%s (coverage %s)" % (name, coverage.__version__)):
                if core == "sysmon" and sys.version_info < (3, 12):
                    self.skipTest("this Python has no sys.monitoring")
                bare = self.seen_by_coverage(options, core, None)
                self.assertGreater(len(bare[0]["files"]["model.py"]["executed_lines"]), 10)
                self.assertEqual(bare[2], 3, bare[1])
                for how in ([], ["--no-probes"]):
                    self.assertEqual(self.seen_by_coverage(options, core, how), bare, how)


if __name__ == "__main__":
    if SANITIZED:
        print("not under a sanitizer: LD_PRELOAD and its run time exclude each other")
        sys.exit(0)
    unittest.main()
