"""Interpreters to try, and programs that are run under them."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
from pythons import pythons  # noqa: E402

SOURCE = os.environ.get("MILLPOND_SOURCE_DIR") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("MILLPOND_BUILD_DIR") or os.path.join(SOURCE, "build")
MILLPOND = os.path.abspath(os.environ.get("MILLPOND") or os.path.join(BUILD, "bin", "millpond"))
LIBRARY = os.path.join(os.path.dirname(os.path.dirname(MILLPOND)), "lib", "millpond", "libmillpond_probe.so")
EXAMPLE = os.path.join(SOURCE, "examples", "leaky_training.py")
GDB = shutil.which("gdb")
LEAK = next(number for number, line in enumerate(open(EXAMPLE), 1) if "self.seen.append(batch)" in line)


def environment(**more):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "MILLPOND", "PYTHON"))}
    clean.update(MILLPOND=MILLPOND, MILLPOND_SOURCE_DIR=SOURCE, PYTHONDONTWRITEBYTECODE="1", PYTHONPATH=os.pathsep.join([os.path.join(SOURCE, "python"), os.path.dirname(os.path.abspath(__file__))]))
    clean.update(more)
    return clean


def run(python, text, folder, code=0, arguments=(), timeout=120, **more):
    """Runs the program in the folder; the lines that it printed."""
    path = os.path.join(folder, "program.py")
    with open(path, "w") as file:
        file.write(textwrap.dedent(text))
    done = subprocess.run([python, path, *arguments], cwd=folder, env=environment(**more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout)
    if done.returncode != code:
        raise AssertionError("exit code %d\n%s\n%s" % (done.returncode, done.stdout.decode(), done.stderr.decode()))
    return done.stdout.decode().splitlines()


def watched(python, folder, text, *arguments, interval=8192):
    """Runs the program under `millpond watch`, sampled finely: what the agent said, and what the program printed."""
    path = os.path.join(folder, "train.py")
    with open(path, "w") as file:
        file.write(text)
    log = os.path.join(folder, "log")
    done = subprocess.run([MILLPOND, "watch", "-o", "run.pond", "--", python, path, *arguments], cwd=folder, env=environment(MILLPOND_AGENT_LOG=log, MILLPOND_INTERVAL=str(interval)),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    with open(log) as file:
        said = [json.loads(line) for line in file]
    errors = [row["error"] for row in said if "error" in row]
    if done.returncode or errors:
        raise AssertionError(done.stderr.decode() + "\n".join(errors))
    return said, done.stdout.decode()


def no_gdb():
    """Why gdb cannot enter a process here; empty: it can."""
    if not GDB:
        return "gdb is not installed"
    sleeper = subprocess.Popen(["sleep", "60"])
    tried = subprocess.run([GDB, "-nx", "-batch", "-p", str(sleeper.pid)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    sleeper.kill()
    sleeper.wait()
    return "this machine does not let gdb trace a process" if b"not permitted" in tried.stdout else ""


def report(path):
    done = subprocess.run([MILLPOND, "report", path, "--json", "-"], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise AssertionError(done.stderr.decode())
    return json.loads(done.stdout)


class Folder(tempfile.TemporaryDirectory):
    def __init__(self):
        super().__init__(prefix="inside-test-")

