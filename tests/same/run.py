#!/usr/bin/env python3
"""Runs random programs (generate.py) bare and watched and compares them byte for byte: standard output, standard error, exit code and the files they leave.

    run.py [--programs N] [--from SEED] [--seed SEED] [--workers N] [--verbose]

Every program runs twice bare: one whose bare runs differ is dropped and counted, for it says nothing. Ends with 1 when a program differs, and when
more than one in ten was dropped."""

import argparse
import concurrent.futures
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import generate

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
from pythons import pythons  # noqa: E402

BUILD = os.environ.get("MILLPOND_BUILD_DIR", "build")
MILLPOND = os.path.abspath(os.environ.get("MILLPOND", os.path.join(BUILD, "bin", "millpond")))
TIMEOUT = 120
# Of `python -m trace --count` all modules are compared but these: how often a pipe is waited for is a matter of time, and how often the machinery of imports and of abstract
# classes is asked depends on modules in C that stay loaded and on classes of the agent's own modules (keep_to_ourselves in the agent).
NOT_COMPARED = re.compile(r"cover/(selectors|subprocess|abc|_collections_abc|_distutils_hack|importlib)[.\w]*\.cover$")


class Ran:
    def __init__(self, code, out, err, files):
        self.code, self.out, self.err, self.files = code, out, err, files

    def differs(self, other):
        """What is not the same, in words; empty: nothing."""
        found = []
        for name in ("code", "out", "err"):
            if getattr(self, name) != getattr(other, name):
                found.append("%s: %r / %r" % (name, *_around(getattr(self, name), getattr(other, name))))
        for name in sorted(set(self.files) | set(other.files)):
            if self.files.get(name) != other.files.get(name):
                found.append("file %s: %r / %r" % (name, (self.files.get(name) or b"")[:80], (other.files.get(name) or b"")[:80]))
        return found


def _around(a, b):
    """Where two texts part."""
    if not isinstance(a, bytes):
        return a, b
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return a[max(0, at - 60):at + 200], b[max(0, at - 60):at + 200]


def run(program, python, folder, watched):
    """In a folder that has the same name each time: it is in tracebacks."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for name, text in program.files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
    environment = {"PATH": os.environ["PATH"], "HOME": folder, "LANG": "C.UTF-8", "PYTHONHASHSEED": "0", **program.environment}
    command = [python, *program.options, "main.py", *program.arguments]
    pond = folder + ".pond"
    if watched:
        if os.path.exists(pond):
            os.unlink(pond)
        command = [MILLPOND, "watch", "--quiet", "-o", pond, "--", *command]
    # A session of its own: signals to the group stay there.
    with open(folder + ".out", "wb") as out, open(folder + ".err", "wb") as err:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)
        try:
            code = process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = "no end after %d s" % TIMEOUT
    with open(folder + ".out", "rb") as file:
        out = file.read()
    with open(folder + ".err", "rb") as file:
        err = file.read()
    if watched:
        # what the watcher itself says begins with an empty line and its name, after all that the program said
        err = re.sub(rb"\nmillpond: [A-Z][A-Z ]*\n.*\Z", b"", err, flags=re.DOTALL)
    files = {}
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in names:
            path = os.path.join(where, name)
            if NOT_COMPARED.search(path):
                continue
            with open(path, "rb") as file:
                files[os.path.relpath(path, folder)] = file.read()
    return Ran(code, out, err, files)


def compare(seed, choice, workplace):
    """None: it says nothing; otherwise the differences."""
    program = generate.program(seed)
    python = choice[seed % len(choice)]
    folder = os.path.join(workplace, "p%s" % seed)
    first, second = run(program, python, folder, False), run(program, python, folder, False)
    if first.differs(second):
        return program, python, None, first.differs(second)
    watched = run(program, python, folder, True)
    differences = first.differs(watched)
    for end in ("", ".out", ".err", ".pond"):
        path = folder + end
        shutil.rmtree(path) if os.path.isdir(path) else os.path.exists(path) and os.unlink(path)
    return program, python, differences, []


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=int, default=30)
    parser.add_argument("--from", type=int, default=1, dest="first")
    parser.add_argument("--seed", type=int, action="append", help="only this one")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--verbose", action="store_true")
    a = parser.parse_args()
    if not os.path.exists(MILLPOND):
        sys.exit("%s is not there: make build" % MILLPOND)
    seeds = a.seed or range(a.first, a.first + a.programs)
    choice = list(pythons().values())
    same = dropped = 0
    different = []
    workplace = tempfile.mkdtemp(prefix="same-")
    try:
        with concurrent.futures.ThreadPoolExecutor(a.workers) as pool:
            for program, python, differences, unsteady in pool.map(lambda seed: compare(seed, choice, workplace), seeds):
                label = "seed %d (%s %s, %s)" % (program.seed, os.path.basename(os.path.dirname(os.path.dirname(python))), " ".join(program.options), ", ".join(program.scenes))
                if differences is None:
                    dropped += 1
                    if a.verbose:
                        print("dropped", label, *unsteady, sep="\n    ")
                elif differences:
                    different.append(program.seed)
                    print("differs", label, *differences, sep="\n    ", flush=True)
                else:
                    same += 1
                    if a.verbose:
                        print("same", label, flush=True)
    finally:
        shutil.rmtree(workplace, ignore_errors=True)
    print("%d programs: %d the same watched and bare, %d differ%s, %d dropped (their own bare runs differ)" %
          (same + dropped + len(different), same, len(different), " (seeds %s)" % ", ".join(map(str, different)) if different else "", dropped))
    # A program whose own order is chance cannot be compared; were it many, nothing would have been shown.
    sys.exit(1 if different or same < 0.9 * len(seeds) else 0)


if __name__ == "__main__":
    main()
