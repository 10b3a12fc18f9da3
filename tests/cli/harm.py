"""What the tests share that run a program bare and watched and compare."""
import json
import os
import shutil
import subprocess
import sys
import time

from program import PROGRAM, InFolder

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
from pythons import pythons  # noqa: E402, F401

MILLPOND = os.path.abspath(PROGRAM)
PYTHON = sys.executable
PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "python")
GCC, CLANG = shutil.which("gcc"), shutil.which("clang")
ROOT = os.geteuid() == 0


def proc(pid, name):
    with open("/proc/%d/%s" % (pid, name)) as file:
        return file.read()


def children_of(pid):
    return [int(word) for word in proc(pid, "task/%d/children" % pid).split()]


def can_mount():
    return ROOT and subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode == 0 if shutil.which("unshare") else False


# Rounds with snapshots and looks, and a child in each: what it ended with is counted.
FORKS = """\
import os, sys, time
kept, failed = [], 0
for epoch in range(%d):
    kept.append([bytes(40000) for _ in range(20)])
    print("epoch", epoch, flush=True)
    time.sleep(0.05)
    pid = os.fork()
    if pid == 0:
        more = [bytes(40000) for _ in range(20)]
        os._exit(0)
    failed += os.waitpid(pid, 0)[1] != 0
print("failed", failed)
"""


class Harm(InFolder):
    def run_bare(self, *command, **options):
        return subprocess.run([str(word) for word in command], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, **options)

    def watch(self, *command, options=(), before=(), **more):
        """Runs it under watch and returns (what it did, the JSON that was found)."""
        result = self.path("result.json")
        if os.path.exists(result):
            os.unlink(result)
        done = self.run_bare(*before, MILLPOND, "watch", "--quiet", "--json", result, *options, "--", *command, **more)
        found = None
        if os.path.exists(result):
            with open(result) as file:
                found = json.load(file)
        return done, found

    def read(self, name):
        try:
            with open(self.path(name)) as file:
                return file.read()
        except OSError:
            return ""

    def wait_for(self, condition, seconds=120):
        end = time.monotonic() + seconds
        while not condition() and time.monotonic() < end:
            time.sleep(0.05)
        self.assertTrue(condition())
