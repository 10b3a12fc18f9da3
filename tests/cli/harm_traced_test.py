"""Trace functions, debuggers and coverage see a watched program as they see it without us, and it keeps its locals under them."""
import sys
import unittest

from harm import PYTHON, Harm, pythons
from program import SANITIZED


class Traced(Harm):
    TRACED = """\
        import time
        def train():
            seen, count = [], 0
            for epoch in range(14):
                value = bytes(30000)
                seen.append(value)
                count += 1
                print("epoch %d" % epoch)
                time.sleep(0.05)
                last = count
            return last, len(seen)
        print(train())
        """

    def test_locals_stay_under_a_trace_function_in_every_python(self):
        self.write("program.py", self.TRACED)
        for python in pythons().values():
            command = [python, "-m", "trace", "--trace", "program.py"]
            bare = self.run_bare(*command)
            for options in ([], ["--no-probes"]):
                done, _ = self.watch(*command, options=options)
                self.assertEqual((done.stdout, done.returncode), (bare.stdout, bare.returncode), (python, options))

    def test_a_tracer_sees_the_program_alone(self):
        self.write("program.py", """\
            import sys, time
            seen = []
            def tracer(frame, event, arg):
                seen.append((frame.f_code.co_filename, frame.f_code.co_name, event, sorted(frame.f_locals)))
                return tracer
            def train():
                kept = []
                for epoch in range(14):
                    kept.append(bytes(50000))
                    print("epoch", epoch)
                    time.sleep(0.05)
                return len(kept)
            sys.settrace(tracer)
            count = train()
            sys.settrace(None)
            print(count, len(seen), {entry[0] for entry in seen} == {__file__})
            """)
        for python in pythons().values():
            bare = self.run_bare(python, "program.py")
            done, _ = self.watch(python, "program.py")
            self.assertEqual(done.stdout, bare.stdout, python)

    def test_a_tracer_that_is_a_method_and_prints_keeps_its_self_and_the_locals_of_what_it_traces(self):
        # As that of coverage in Python: a look at a line that the tracer prints comes while the traced function's locals are copied out.
        self.write("program.py", """\
            import sys, time
            class Tracer:
                def __init__(self):
                    self.lines = 0
                def trace(self, frame, event, arg):
                    if event == "line":
                        self.lines += 1
                        print("epoch %d: line %d" % (self.lines, frame.f_lineno))
                        time.sleep(0.01)
                    return self.trace
            def train(kept, last=None):
                for epoch in range(14):
                    value = bytes(50000)
                    kept.append(value)
                    last = epoch
                return last, len(value), len(kept)
            tracer = Tracer()
            sys.settrace(tracer.trace)
            found = train([])
            sys.settrace(None)
            print(found, tracer.lines)
            """)
        for python in pythons().values():
            bare = self.run_bare(python, "program.py")
            self.assertEqual(bare.returncode, 0, bare.stderr)
            done, _ = self.watch(python, "program.py")
            self.assertEqual((done.stdout, done.returncode), (bare.stdout, bare.returncode), (python, done.stderr))

    def test_a_debugger_stops_shows_and_changes_what_it_does_without_us(self):
        self.write("program.py", self.TRACED)
        commands = "break 8\ncontinue\np epoch, count, len(seen)\n!count = 100\ncontinue\np count, sorted(locals())\nup\np sorted(k for k in locals() if k[0] != '_')\ndown\n" \
                   "clear 1\nnext\nnext\nargs\nwhere\ncontinue\nquit\n"
        for python in pythons().values():
            bare = self.run_bare(python, "-m", "pdb", "program.py", input=commands)
            self.assertIn("101", bare.stdout)
            done, _ = self.watch(python, "-m", "pdb", "program.py", input=commands)
            self.assertEqual((done.stdout, done.returncode), (bare.stdout, bare.returncode), (python, done.stderr))


if __name__ == "__main__":
    if SANITIZED:
        print("not under a sanitizer: LD_PRELOAD and its run time exclude each other")
        sys.exit(0)
    unittest.main()
