"""millpond.watch, its report and millpond.check, from inside a program that runs."""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from support import INTERPRETERS, MILLPOND, SOURCE, environment  # noqa: E402

EXAMPLES = os.path.join(SOURCE, "examples")
START = """
import sys
sys.path.insert(0, %r)
import random
import leaky_training
import millpond

def train(rng, trainer):
    return sum(trainer.train_on(leaky_training.make_batch(rng)) for _ in range(25)) / 25
""" % EXAMPLES
LINE = 1 + open(os.path.join(EXAMPLES, "leaky_training.py")).read().splitlines().index("        self.seen.append(batch)")


class Scripts(unittest.TestCase):
    def setUp(self):
        self.folder, self.scripts = (tempfile.mkdtemp(prefix="millpond watch ") for _ in range(2))
        self.addCleanup(shutil.rmtree, self.folder)
        self.addCleanup(shutil.rmtree, self.scripts)

    def run_python(self, text, python=sys.executable, **more):
        script = os.path.join(self.scripts, "script.py")
        with open(script, "w") as file:
            file.write(START + text)
        done = subprocess.run([python, script], cwd=self.folder, env=environment(**more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=240)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done


class FromInside(Scripts):
    def test_importing_it_imports_nothing_else_on_any_python(self):
        # Its milliseconds are in bench/inside.py; what it can take is bounded by what it imports.
        text = "import sys; before = set(sys.modules); import millpond; print(sorted(set(sys.modules) - before), millpond.__all__)"
        for version, python in INTERPRETERS:
            with self.subTest(version):
                done = subprocess.run([python, "-c", text], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                self.assertIn("'watch'", done.stdout, done.stderr)
                self.assertTrue(done.stdout.startswith("['millpond'] "), done.stdout)

    def test_a_block_with_rounds_names_line_and_fix_on_every_python(self):
        text = """
with millpond.watch(output="run file.pond") as w:
    rng, trainer = random.Random(7), leaky_training.Trainer()
    for epoch in w.rounds(range(12), "epoch"):
        train(rng, trainer)
r = w.report()
import json
f = r.findings[0]
page = r.save_html("page.html")
print(json.dumps({"verdict": r.verdict, "sentence": r.sentence, "file": f.file, "line": f.line, "snippet": f.snippet, "fix": f.fix, "cause": f.cause,
                  "same": json.loads(r.to_json())["verdict"], "path": r.path, "html": r._repr_html_(), "text": str(r), "page": open(page).read()[:200]}))
"""
        for version, python in INTERPRETERS:
            with self.subTest(python=version):
                shutil.rmtree(self.folder)
                os.mkdir(self.folder)
                said = json.loads(self.run_python(text, python).stdout.splitlines()[-1])
                self.assertEqual((said["verdict"], said["same"], said["line"], said["snippet"], said["cause"]), ("leak", "leak", LINE, "self.seen.append(batch)", "C14"))
                self.assertTrue(said["file"].endswith("leaky_training.py"))
                self.assertIn("Memory grows by", said["sentence"])
                self.assertIn("self.seen", said["fix"])
                self.assertEqual(said["path"], os.path.join(os.path.realpath(self.folder), "run file.pond"))
                self.assertIn("<svg", said["html"])
                self.assertIn("self.seen.append(batch)", said["html"])
                self.assertNotIn("<script", said["html"])
                self.assertLess(len(said["html"]), 20000)
                self.assertIn("LEAK", said["text"])
                self.assertIn("<html", said["page"].lower())

    def test_a_decorated_function_is_watched_and_its_answer_printed(self):
        done = self.run_python("""
@millpond.watch
def run(times):
    rng, trainer = random.Random(7), leaky_training.Trainer()
    for epoch in range(times):
        print("epoch", epoch, "loss", train(rng, trainer))
    return times

@millpond.watch(output="second.pond")
def calls_run():
    return run(2)

print(run(12), run.__name__, run.report.verdict)
print(calls_run(), calls_run.report.path.rpartition("/")[2])
""")
        self.assertIn("12 run leak", done.stdout)
        self.assertIn("2 second.pond", done.stdout)
        self.assertEqual(done.stderr.count("millpond: LEAK"), 1)
        self.assertEqual(sorted(os.path.basename(path) for path in glob.glob(os.path.join(self.folder, "*.pond"))), ["run.pond", "second.pond"])

    def test_a_flat_block_is_flat_and_the_process_is_as_before(self):
        done = self.run_python("""
import ctypes, os, threading  # ctypes: libffi 3.5 opens its own file when it is imported, whoever does
def descriptors():
    return sorted(os.readlink("/proc/self/fd/" + fd) for fd in os.listdir("/proc/self/fd") if os.path.lexists("/proc/self/fd/" + fd))
fds, threads = descriptors(), threading.active_count()
out = print
with millpond.watch(output="flat.pond") as w:
    for i in w.rounds(range(12)):
        x = [float(n) for n in range(50000)]
    assert w.path.endswith("flat.pond")
assert descriptors() == fds and threading.active_count() == threads and print is out
print(w.report().verdict)
w.round()
""")
        self.assertEqual(done.stdout.split(), ["flat"])

    def test_an_exception_goes_through_and_a_second_block_is_refused_plainly(self):
        done = self.run_python("""
try:
    with millpond.watch(output="a.pond"):
        try:
            with millpond.watch(output="b.pond"):
                pass
        except RuntimeError as error:
            print("refused:", error)
        raise KeyError("mine")
except KeyError as error:
    print("through:", error)
try:
    millpond.watch().report()
except RuntimeError as error:
    print(error)
try:
    millpond.watch("run.pond")
except TypeError as error:
    print(error)
""")
        self.assertIn("refused: this process is being watched already", done.stdout)
        self.assertIn("through: 'mine'", done.stdout)
        self.assertIn("nothing was watched yet", done.stdout)
        self.assertIn("output=", done.stdout)

    def test_profile_inside_a_watch_and_a_watch_inside_a_profile(self):
        done = self.run_python("""
@millpond.profile(stream=False)
def work(kept):
    kept.append(bytearray(3000000))

@millpond.profile(stream=False)
def around(kept):
    with millpond.watch(output="inner.pond") as w:
        for _ in w.rounds(range(3)):
            kept.append(bytearray(3000000))
    return w

kept = []
with millpond.watch(output="outer.pond") as w:
    for i in w.rounds(range(10)):
        work(kept)
        print(round(millpond.profile.last.kept, -6))
r = w.report()
print(r.verdict, w._session.remarks)
work(kept)
print(round(millpond.profile.last.kept, -6))
print(around(kept)._session.remarks, round(millpond.profile.last.kept, -6))
""")
        lines = done.stdout.splitlines()
        self.assertEqual(lines[:10], ["3000000"] * 10)
        self.assertEqual(lines[10], "leak []")
        self.assertEqual(lines[11], "3000000")
        self.assertEqual(lines[12], "[] 9000000")

    def test_under_millpond_watch_the_run_outside_has_the_answer(self):
        script = os.path.join(self.folder, "joined.py")
        with open(script, "w") as file:
            file.write(START + """
with millpond.watch() as w:
    rng, trainer = random.Random(7), leaky_training.Trainer()
    for epoch in w.rounds(range(3)):
        train(rng, trainer)
print(w.path, w.report().verdict, w.report().sentence)
""")
        done = subprocess.run([MILLPOND, "watch", "--quiet", "-o", "outer.pond", "--", sys.executable, script], cwd=self.folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("None None This process is under `millpond watch`", done.stdout)
        self.assertEqual([name for name in os.listdir(self.folder) if name.endswith(".pond")], ["outer.pond"])


class Check(Scripts):
    def test_a_function_that_leaks_raises_with_cause_line_and_fix(self):
        done = self.run_python("""
kept = []
def leaks():
    kept.append(bytearray(2000000))
def flat():
    return len(bytearray(2000000))
try:
    millpond.check(leaks, max_growth="100 kB/call")
except AssertionError as error:
    print(type(error).__name__, error.cause, error.line, "|", error)
print(millpond.check(flat).verdict)
print(millpond.check(leaks, max_growth="3 MB/call", repeat=8).verdict)
try:
    millpond.check(flat, max_peak="1 MB", repeat=6)
except millpond.LeakError as error:
    print(error)
with millpond.check(allow_unsure=True) as check:
    for _ in check.rounds():
        flat()
print(check.times, check.report.verdict)
for wrong in ("1 MB/epoch", "many"):
    try:
        millpond.check(flat, max_growth=wrong)
    except ValueError as error:
        print("wrong:", error)
""")
        out = done.stdout
        self.assertRegex(out, r"LeakError C14 \d+ \| memory grows by 1\.9\d MiB per call; at most 100 kB/call is allowed")
        self.assertIn("held by list kept", out)
        self.assertIn("fix: ", out)
        self.assertIn("\nflat\nleak\n", out)
        self.assertRegex(out, r"memory reaches .* MiB; at most 1 MB are allowed")
        self.assertIn("10 flat", out)
        self.assertIn("wrong: max_growth is for each call", out)
        self.assertIn("wrong: 'many' is not an amount", out)
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    unittest.main()
