"""millpond watch --pid where the probe cannot come in: a sentence says why and what to do, the process is seen from outside and runs on unharmed."""
import ctypes
import os
import shutil
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from support import MILLPOND, Folder, environment, no_gdb  # noqa: E402

kSeize, kInterrupt, kDetach = 0x4206, 0x4207, 17  # of ptrace
WAITS = "import sys\nprint('ready', flush=True)\nwhile sys.stdin.readline(): pass\nprint('unharmed')\n"
WAITS_C = """\
#include <stdio.h>
int main(void) {
  char line[64];
  puts("ready"), fflush(stdout);
  while (fgets(line, sizeof line, stdin)) {}
  return puts("unharmed") < 0;
}
"""


def can_mount():
    return os.geteuid() == 0 and shutil.which("unshare") and subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode == 0


class Refused(unittest.TestCase):
    def told(self, command, folder, between=lambda pid: None, after=lambda pid: None, **more):
        """What the watcher says of a program that waits, in one line."""
        process = subprocess.Popen(command, cwd=folder, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.assertEqual(process.stdout.readline(), "ready\n")
        between(process.pid)
        try:
            done = subprocess.run([MILLPOND, "watch", "--pid", str(process.pid), "--for", "1"], cwd=folder, env=environment(**more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        finally:
            after(process.pid)
            said, complained = process.communicate(timeout=60)
        self.assertEqual((process.returncode, said, complained), (0, "unharmed\n", ""))
        self.assertEqual(done.returncode, 0, done.stderr)
        told = " ".join(done.stderr.split())
        self.assertIn("not where it allocates", told)
        return told

    def test_without_gdb(self):
        if sys.version_info >= (3, 14):
            self.skipTest("this Python needs no gdb")
        with Folder() as folder:
            self.assertIn("can be entered only with gdb, which is not installed (Python 3.14 and newer need none)", self.told([sys.executable, "-c", WAITS], folder, PATH="/nowhere"))

    def test_a_process_that_does_not_come_back_to_python_runs_nothing_of_ours_when_it_does(self):
        if sys.version_info < (3, 14) and no_gdb():
            self.skipTest(no_gdb())
        with Folder() as folder:
            self.assertIn("has not come back to Python within", self.told([sys.executable, "-c", WAITS], folder))

    def test_a_process_that_another_debugger_holds(self):
        if sys.version_info >= (3, 14):
            self.skipTest("this Python is asked in, whoever traces it")
        if no_gdb():
            self.skipTest(no_gdb())
        ptrace = ctypes.CDLL(None, use_errno=True).ptrace
        ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

        def hold(pid):
            if ptrace(kSeize, pid, None, None) != 0:
                self.skipTest("this process may not trace another")

        def release(pid):
            ptrace(kInterrupt, pid, None, None)
            os.waitpid(pid, 0)
            ptrace(kDetach, pid, None, None)

        with Folder() as folder:
            self.assertRegex(self.told([sys.executable, "-c", WAITS], folder, hold, release), r"process \d+ may not be traced: .* or start the program under `millpond watch`")

    @unittest.skipUnless(can_mount(), "needs to mount")
    def test_a_process_with_files_of_its_own(self):
        with Folder() as folder:
            self.assertIn("runs in a container with files of its own; run millpond inside of it", self.told(["unshare", "-m", sys.executable, "-c", WAITS], folder))

    def compile(self, folder, *options):
        with open(os.path.join(folder, "waits.c"), "w") as file:
            file.write(WAITS_C)
        if not shutil.which("gcc") or subprocess.run(["gcc", *options, "waits.c", "-o", "waits"], cwd=folder).returncode:
            self.skipTest("no compiler, or it cannot do this")

    def test_a_program_that_is_linked_statically(self):
        with Folder() as folder:
            self.compile(folder, "-static")
            self.assertIn("is linked statically, or not with glibc: nothing can be loaded into it", self.told(["./waits"], folder))

    def test_a_gdb_that_hangs_does_not_leave_the_program_stopped(self):
        with Folder() as folder:
            self.compile(folder)
            with open(os.path.join(folder, "gdb"), "w") as file:
                file.write('#!/bin/sh\nwhile [ "$1" != -p ]; do shift; done\nkill -STOP "$2"\nexec sleep 100\n')
            os.chmod(file.name, 0o755)
            self.assertIn("has not called malloc within 20 s", self.told(["./waits"], folder, PATH=folder + ":" + os.environ["PATH"]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
