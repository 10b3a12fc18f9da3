#!/usr/bin/env python3
"""A leak in every process and every memory: each case of cases.py is watched, and the answer must have the right verdict, process, line, holder and rate.

  run.py [WORDS ...] [--quick] [--jobs N] [--keep DIR]

WORDS pick the cases whose name contains one of them. --quick: the few that `make test` has time for. What is not here (torch, an allocator, a version of Python, headers of Python) is named, and its cases
are skipped. EVERYWHERE_FORKY: the folder of an unpacked Debian testing, for Python 3.14 and 3.15."""
import argparse
import concurrent.futures
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
from cases import CASES, DEBIAN, FORKY, library  # noqa: E402

MILLPOND = os.path.abspath(os.environ.get("MILLPOND") or os.path.join(ROOT, "build", "bin", "millpond"))
NEAR = 0.15  # a rate is right within it, or where the printed interval holds the truth
SKIPPED = 77  # what CTest is told when nothing could run


class Missing(Exception):
    """Why a case cannot run here."""


class Wrong(Exception):
    pass


def answers(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout.decode().strip() if done.returncode == 0 else ""


def python_of(wanted):
    """The command that starts such a Python."""
    if not wanted:
        return [sys.executable], {}
    if wanted == "torch":
        for path in (DEBIAN, sys.executable):
            if answers([path, "-c", "import torch; print(1)"]):
                return [path], {}
        raise Missing("no torch for " + DEBIAN)
    paths = glob.glob(os.path.expanduser("~/.pyenv/versions/%s.*/bin/python3" % wanted)) + ["/usr/bin/python" + wanted, sys.executable, DEBIAN]
    for path in paths:
        if os.access(path, os.X_OK) and answers([path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]) == wanted:
            return [path], {}
    inner = os.path.join(FORKY, "usr/bin/python" + wanted)
    if FORKY and os.access(inner, os.X_OK):
        folders = ":".join(os.path.join(FORKY, part) for part in ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"))
        return [os.path.join(FORKY, "lib64/ld-linux-x86-64.so.2"), "--library-path", folders, inner], {"PYTHONHOME": os.path.join(FORKY, "usr")}
    raise Missing("no Python " + wanted)


def build(case, folder):
    """What stands before the program's arguments, and what it needs in the environment."""
    program = os.path.join(HERE, "programs", case.program)
    preload = {}
    path = ""
    if case.allocator:
        path = library(case.allocator)
        if not path:
            raise Missing("no %s" % case.allocator)
        if not case.linked:
            preload = {"LD_PRELOAD": path}
    if case.python == "none":
        binary = os.path.join(folder, "program")
        linked = ["-Wl,--no-as-needed", path, "-Wl,--as-needed"] if case.linked else []
        if case.ours:
            base = os.path.join(os.path.dirname(os.path.dirname(MILLPOND)), "lib", "libmillpond_base.a")
            if not os.path.exists(base):
                raise Missing("no " + base)
            linked = ["-I" + os.path.join(ROOT, "include"), base, "-lfmt"]
        compile_with([os.environ.get("CXX", "c++"), "-std=c++20", *case.flags, program, "-o", binary, "-pthread", *linked])
        return [binary], preload
    for name in (case.program, "known.py"):
        shutil.copy(os.path.join(HERE, "programs", name), folder)
    command, more = python_of(case.python)
    if case.extension:
        ask = "import sysconfig; print(sysconfig.get_path('include')); print(sysconfig.get_config_var('EXT_SUFFIX'))"
        include, suffix = answers(command + ["-c", ask]).splitlines()
        if not os.path.exists(os.path.join(include, "Python.h")):
            raise Missing("no headers of Python in " + include)
        module = os.path.splitext(case.extension)[0]
        compile_with([os.environ.get("CC", "cc"), "-g", "-O1", "-shared", "-fPIC", "-I" + include, os.path.join(HERE, "programs", case.extension), "-o", os.path.join(folder, module + suffix)])
    return command + [os.path.join(folder, case.program)], dict(preload, **more)


def launched(case, folder, command):
    """The same, started by the case's launcher."""
    if not case.launcher:
        return command
    name, *arguments = case.launcher.split()
    launcher = os.path.join(HERE, "programs", name)
    if name.endswith(".c"):
        binary = os.path.join(folder, "launch")
        compile_with([os.environ.get("CC", "cc"), "-static", launcher, "-o", binary])
        return [binary, *command]
    if name.endswith(".sh"):
        return ["sh", launcher, *command]
    return [command[0], launcher, *arguments, command[-1]]  # it starts the Python that it runs in itself


def compile_with(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Wrong("does not compile:\n" + done.stdout)


def watch(case, folder):
    """(the answer, {pid: what that process knows of itself})."""
    command, more = build(case, folder)
    command = launched(case, folder, command)
    known = os.path.join(folder, "known")
    os.mkdir(known)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "MILLPOND", "PYTHON"))}
    clean.update(more, EVERYWHERE=known, PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1", **case.more)
    answer = os.path.join(folder, "answer.json")
    done = subprocess.run([MILLPOND, "watch", "--quiet", "-o", os.path.join(folder, "run.pond"), "--json", answer, "--", *command, *case.arguments], cwd=folder, env=clean,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=180)
    if done.returncode:
        raise Wrong("ended with %d:\n%s" % (done.returncode, done.stdout[-2000:]))
    truths = {}
    for path in glob.glob(os.path.join(known, "*.json")):
        with open(path) as file:
            truths[int(os.path.basename(path)[:-5])] = json.load(file)
    with open(answer) as file:
        return json.load(file), truths


def right_lines(case):
    """(file, line) of each line that a mark of the case stands behind."""
    found = set()
    for name in {case.program, case.extension} - {""}:
        with open(os.path.join(HERE, "programs", name)) as file:
            for number, text in enumerate(file, 1):
                mark = next((part.strip().rstrip("*/ ") for sign in ("# ", "// ", "/* ") for part in text.split(sign)[1:]), "")
                if mark in case.lines:
                    found.add((name, number))
    return found


def check_line(case, finding):
    places = [place for place in (finding["blame"], finding["born_at"]) if place]
    said = ["%s:%d in %s" % (os.path.basename(place["file"]), place["line"], place["function"]) for place in places]
    if case.function:
        if not any(case.function in place["function"] for place in places):
            return "function %s, not %s" % (said, case.function)
    elif case.lines:
        wanted = right_lines(case)
        if not any((os.path.basename(place["file"]), place["line"]) in wanted for place in places):
            return "line %s, not %s" % (said, sorted(wanted))
    return ""


def check_rate(finding, truth):
    rounds = dict(truth["rounds"])
    unit = "call" if finding["each"].startswith("each time") else finding["unit"]
    right = truth["in_seconds"] / truth["seconds"] if unit == "second" else truth["bytes"] / rounds[unit] if unit in rounds else None
    if right is None:
        return "rate told for each %s" % unit
    low, high = finding["bytes_per_unit_range"]
    said = finding["bytes_per_unit"]
    if abs(said / right - 1) > NEAR and not low <= right <= high:
        return "rate %.0f (%.0f to %.0f) for each %s, not %.0f" % (said, low, high, unit, right)
    return ""


def check(case, answer, truths):
    """What is wrong with an answer, a sentence each."""
    wrong = []
    if answer["verdict"] not in case.verdicts:
        return ["verdict %s: %s" % (answer["verdict"], answer["sentence"])]
    if "leak" not in case.verdicts:
        return []
    finding = next((f for f in answer["findings"] if f["verdict"] == "leak" and f["sets_verdict"]), None)
    if finding is None:
        return ["no finding sets the verdict"]
    pids = {row["process"]: row["pid"] for row in answer["processes"]}
    pid = pids.get(finding["process"])
    if case.program != "shared.py" or case.arguments not in (("tmpfs",), ("nameless",)):
        if pid not in truths:
            wrong.append("process %s, not one of %s" % (pid, sorted(truths)))
    if finding["processes"] != case.processes:
        wrong.append("%d processes, not %d" % (finding["processes"], case.processes))
    wrong.append(check_line(case, finding))
    wrong.append(check_rate(finding, truths.get(pid) or next(iter(truths.values()))))
    if case.forecast and case.forecast != (finding["forecast"] or {}).get("limit"):
        wrong.append("forecast %s, not %s" % (finding["forecast"], case.forecast))
    told = json.dumps([finding["holder"], finding["chain"], finding["evidence"], finding["title"]])
    wrong += ["%r is not in what was told: %s" % (word, told[:400]) for word in case.holder if word not in told]
    others = [f for f in answer["findings"] if f["verdict"] == "leak" and f["sets_verdict"] and f is not finding]
    wrong += ["told besides: %s" % f["title"] for f in others]
    return [words for words in wrong if words]


def run(case, keep):
    begin = time.monotonic()
    folder = tempfile.mkdtemp(prefix="everywhere-")
    try:
        answer, truths = watch(case, folder)
        wrong = check(case, answer, truths)
        state = "wrong" if wrong else "right"
    except Missing as missing:
        state, wrong = "skipped", [str(missing)]
    except (Wrong, subprocess.TimeoutExpired) as failed:
        state, wrong = "wrong", [str(failed)]
    finally:
        if keep:
            target = os.path.join(keep, case.name.replace(" ", "_"))
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(folder, target, ignore=shutil.ignore_patterns("data-*.bin"))
        shutil.rmtree(folder, ignore_errors=True)
    return case, state, wrong, time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", help="leave run files and answers in this folder")
    options = parser.parse_args()
    cases = [case for case in CASES if (not options.quick or case.quick) and (not options.words or any(words in case.name for words in options.words))]
    if not cases:
        parser.error("no case has such a name")
    counts = {"right": 0, "wrong": 0, "skipped": 0}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:  # the programs wait most of the time
        for case, state, wrong, seconds in pool.map(lambda case: run(case, options.keep), cases):
            counts[state] += 1
            if state == "skipped" and "run_test" in sys.modules:
                sys.modules["run_test"].note(case.name, "; ".join(wrong))
            print("%-8s %-40s %5.1f s  %s" % (state, case.name, seconds, "; ".join(wrong)), flush=True)
    print("%(right)d right, %(wrong)d wrong, %(skipped)d skipped" % counts)
    return 1 if counts["wrong"] else 0 if counts["right"] else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
