"""millpond watch --pid: the probe comes into a process that runs already, finds what grows, and leaves it unharmed."""
import json
import os
import signal
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from tables import ONE_HEAP  # noqa: E402
from support import BUILD, EXAMPLE, GDB, LEAK, MILLPOND, Folder, environment, no_gdb, pythons  # noqa: E402

INTERPRETERS = pythons(free_threaded=True)


def is_newer(version):
    """Whether it has sys.remote_exec."""
    return int(version.rstrip("t").split(".")[1]) >= 14



# Runs until its standard input closes; says then what of its tables and threads is not as it was.
PROGRAM = """
import os, random, select, sys, time
import ctypes, tables
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import leaky_training as leaky
before, allocators, traces = tables.words(tables.FAMILY), tables.allocators(), tables.traces()
finders, mappings = list(sys.meta_path), tables.mappings() if "MALLOC_MMAP_MAX_" in os.environ else None
epoch = after = changed = _ = names = None
trainer, rng = leaky.Trainer(), random.Random(7)
names = set(dir())
print("ready", flush=True)
epoch = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    for _ in range(2):
        trainer.train_on(leaky.make_batch(rng))
    print("epoch %d: loss 0.1" % epoch, file=sys.stderr)
    epoch += 1
    time.sleep(0.01)
after = tables.words(tables.FAMILY)
changed = [key for key in before if before[key] != after.get(key)]  # modules that came meanwhile are no part of it
assert not changed, changed
assert tables.allocators() == allocators
assert tables.traces() == traces, (tables.traces(), traces)
assert sys.meta_path == finders, sys.meta_path
assert mappings is None or tables.mappings() == mappings, sorted(tables.mappings() ^ mappings)
assert set(dir()) == names, set(dir()) ^ names
print("unharmed")
"""


class Process:
    def __init__(self, command, folder, **more):
        self.errors = os.path.join(folder, "errors")
        with open(self.errors, "w") as errors:
            self.child = subprocess.Popen(command, cwd=folder, env=environment(LD_BIND_NOW="1", **more), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        assert self.child.stdout.readline() == b"ready\n"

    def maps(self, library):
        with open("/proc/%d/maps" % self.child.pid) as file:
            return library in file.read()

    def epochs(self):
        with open(self.errors) as file:
            return sum(line.startswith("epoch") for line in file)

    def ends(self):
        out, _ = self.child.communicate(timeout=60)
        if self.child.returncode:
            with open(self.errors) as file:
                print("".join(line for line in file if not line.startswith("epoch")))
        return self.child.returncode, out.decode()


class ByPid(unittest.TestCase):
    def watch(self, process, folder, *options, interrupt=False, **more):
        command = [MILLPOND, "watch", "--pid", str(process.child.pid), "--json", "result.json", *options]
        watching = subprocess.Popen(command, cwd=folder, env=environment(**more), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if interrupt:
            self.wait_for(lambda: process.maps("libmillpond_probe.so") and process.epochs())
            entered = process.epochs()
            self.wait_for(lambda: process.epochs() >= entered + 50)
            watching.send_signal(signal.SIGINT)
        _, told = watching.communicate(timeout=200)
        self.assertEqual(watching.returncode, 0, told.decode())
        with open(os.path.join(folder, "result.json")) as file:
            return json.load(file)

    def wait_for(self, condition):
        end = time.monotonic() + 120
        while not condition() and time.monotonic() < end:
            time.sleep(0.05)
        self.assertTrue(condition())

    def needs_gdb(self, folder):
        why = no_gdb()
        if why:
            self.skipTest(why)

    def older(self):
        """A Python that is entered by gdb."""
        found = sorted(version for version in INTERPRETERS if not is_newer(version) and not version.endswith("t"))
        if not found:
            self.skipTest("all Pythons here have sys.remote_exec")
        return found[-1]

    def check(self, version, folder, *options, interrupt=False, program={}, **more):
        with open(os.path.join(folder, "program.py"), "w") as file:
            file.write(PROGRAM)
        process = Process([INTERPRETERS[version], "program.py", EXAMPLE], folder, **program)
        try:
            found = self.watch(process, folder, *options, interrupt=interrupt, **more)
        finally:
            ended = process.ends()
        self.assertEqual(ended, (0, "unharmed\n"))
        if interrupt:
            self.assertEqual([process["seen"] for process in found["processes"]], ["inside"], found)
            return
        self.assertEqual(found["verdict"], "leak", found)
        blame = found["findings"][0]["blame"]
        self.assertEqual((os.path.basename(blame["file"]), blame["line"]), ("leaky_training.py", LEAK), found["findings"][0])

    def test_a_python_program_is_entered_by_gdb_its_leak_found_with_its_line_and_it_runs_on_unharmed(self):
        with Folder() as folder:
            self.needs_gdb(folder)
        for version in sorted(version for version in INTERPRETERS if version in ("3.9", "3.13", "3.13t")):
            with self.subTest(version), Folder() as folder:
                self.check(version, folder, "--for", "10")

    def test_ctrl_c_ends_the_watching_and_not_the_program(self):
        with Folder() as folder:
            self.needs_gdb(folder)
            self.check(self.older(), folder, interrupt=True)

    def test_no_mapping_of_ours_is_left_in_a_program_that_gdb_has_entered(self):
        with Folder() as folder:
            self.needs_gdb(folder)
            self.check(self.older(), folder, interrupt=True, program=ONE_HEAP)

    def test_the_seconds_of_watching_begin_when_the_program_has_been_entered(self):
        with Folder() as folder:
            self.needs_gdb(folder)
            with open(os.path.join(folder, "gdb"), "w") as file:
                file.write('#!/bin/sh\nsleep 11\nexec %s "$@"\n' % GDB)
            os.chmod(file.name, 0o755)
            self.check(self.older(), folder, "--for", "10", PATH=folder + ":" + os.environ["PATH"])

    def test_python_from_3_14_on_is_entered_by_remote_exec(self):
        newer = [version for version in INTERPRETERS if is_newer(version)]
        if not newer:
            self.skipTest("no Python 3.14 or newer is here")
        for version in newer:
            with self.subTest(version), Folder() as folder:
                self.check(version, folder, "--for", "10", PATH="/nowhere")  # without gdb

    def test_python_from_3_14_on_is_entered_by_gdb_where_remote_exec_is_switched_off(self):
        newer = [version for version in INTERPRETERS if is_newer(version)]
        if not newer:
            self.skipTest("no Python 3.14 or newer is here")
        for version in newer:
            with self.subTest(version), Folder() as folder:
                self.needs_gdb(folder)
                self.check(version, folder, "--for", "10", program={"PYTHON_DISABLE_REMOTE_DEBUG": "1"})

    def test_a_native_program_is_entered_by_gdb_and_runs_on_unharmed(self):
        with Folder() as folder:
            self.needs_gdb(folder)
            process = Process([os.path.join(BUILD, "tests", "visited"), "--leak", "12"], folder)
            self.watch(process, folder, "--for", "6", "--native")
            self.assertEqual(process.ends(), (0, "unharmed\n"))
            told = subprocess.run([MILLPOND, "report", "run.pond", "--table"], cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertRegex(told.stdout.decode(), r"visited\.cc:\d+ +remember\b")


if __name__ == "__main__":
    unittest.main(verbosity=2)
