#!/usr/bin/env python3
"""Watches programs whose truth is known, and says how often the doctor is right.

  judge.py --programs 500            generated programs; the seed is the hash of the commit
  judge.py --cases FOLDER            programs with a truth beside them, in any of our formats (repeatable)
  judge.py ... --rejudge             the kept run files again, by `millpond report --json`; no program runs
  judge.py ... --open                also which programs were judged wrongly: only after their figures are committed
  judge.py ... --names A,B           some of them

Answers, run files and figures are kept in build/judge/COMMIT (--results); what is there already is not run again. Programs whose interpreter is not here are counted
as not run. With --bars the exit code is 1 when a bar is missed."""
import argparse
import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import figures
import truths
from environments import MILLPOND, ROOT, variables
from generate import write
from generator import make


def git(*words):
    """What git says; nothing where it is not installed, or this is no clone."""
    try:
        return subprocess.run(["git", "-C", ROOT, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.strip()
    except FileNotFoundError:
        return ""


def seed_of_commit():
    """The hash of the commit, and whether the tree is as committed: only then nobody can have seen the programs."""
    commit = git("rev-parse", "HEAD")
    if not commit:
        return "none", False
    return commit, not git("status", "--porcelain")


class Lines(threading.Thread):
    """Passes the program's output into a file and notes when marked lines came."""

    def __init__(self, pipe, pattern, log):
        super().__init__(daemon=True)
        self.pipe, self.pattern, self.log, self.times = pipe, re.compile(pattern.encode()) if pattern else None, log, []

    def run(self):
        for line in self.pipe:
            self.log.write(line[:2000])
            if self.pattern and self.pattern.search(line):
                self.times.append(time.monotonic())


def seconds_per_round(truth, times):
    """How long a round took by the lines that were printed, in the later half of the run."""
    if not truth.get("rounds_per_mark") or len(times) < 6:
        return None
    later = times[len(times) // 2:]
    return (later[-1] - later[0]) / (len(later) - 1) / truth["rounds_per_mark"] * (truth["workers"] if truth["rhythm"] == "pool" else 1) or None


def watch(truth, keep):
    """Runs one program under the doctor. Returns the answer (None: there is none) and what is known of the run."""
    python = truths.python_of(truth)
    target = os.path.join(keep, truth["name"])
    command = [MILLPOND, "watch", "--quiet", "--force", "-o", target + ".pond", "--json", target + ".answer", "--", python, truth["program"]]
    scratch = os.path.join(keep, truth["name"] + ".folder")
    os.makedirs(scratch, exist_ok=True)
    begun = time.monotonic()
    problem = None
    with open(target + ".log", "wb") as log:
        # Measured programs are run from their own folder, as their README says; all others from an empty one.
        child = subprocess.Popen(command, cwd=truth["folder"] if truth["format"] == "measured" else scratch, env=variables(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, start_new_session=True)
        lines = Lines(child.stdout, truth.get("mark"), log)
        lines.start()
        try:
            child.wait(truth["timeout_s"])
        except subprocess.TimeoutExpired:
            problem = f"not ended after {truth['timeout_s']} s"
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        lines.join(5)
    shutil.rmtree(scratch, ignore_errors=True)
    if child.returncode and not problem:
        problem = f"ended with {child.returncode}"
    run = {"seconds": round(time.monotonic() - begun, 2), "code": child.returncode, "problem": problem, "marks": len(lines.times), "seconds_per_round": seconds_per_round(truth, lines.times), "run_file": target + ".pond"}
    return answer_in(target + ".answer"), run


def answer_in(path):
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def read_again(kept):
    """The answer of a kept run file by the doctor as it is now."""
    done = subprocess.run([MILLPOND, "report", "--json", "-", kept["run"]["run_file"]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        return json.loads(done.stdout)
    except ValueError:
        return None


def judge_one(truth, keep, rejudge):
    """The row of one program, from what is kept of it where there is something."""
    path = os.path.join(keep, truth["name"] + ".json")
    if os.path.exists(path):
        with open(path) as file:
            kept = json.load(file)
        if rejudge:
            kept["answer"] = read_again(kept)
    elif rejudge:
        return None
    else:
        answer, run = watch(truth, keep)
        kept = {"truth": truth, "answer": answer, "run": run}
        with open(path + ".part", "w") as file:
            json.dump(kept, file)
        os.replace(path + ".part", path)
    # The truth is that of the program as it was when it ran; nothing is relabelled afterwards.
    return figures.score(kept["truth"], kept["answer"], kept["run"])


def cases_of(options, results, seed):
    """The truths of what is to be judged."""
    if options.cases:
        paths = [path for folder in options.cases for path in truths.below(folder)]
        if not paths:
            raise SystemExit(f"judge: no program with a truth (NAME.py and NAME.json) below {', '.join(options.cases)}")
    else:
        folder = os.path.join(results, "programs")
        numbers = range(options.first, options.first + options.programs)
        paths = []
        for number in numbers:
            program = make(seed, number, options.quick)
            path = os.path.join(folder, program.name, program.name + ".json")
            if not os.path.exists(path):
                write(folder, program)
            paths.append(path)
    wanted = set(options.names.split(",")) if options.names else None
    return [truth for truth in map(truths.read, paths) if wanted is None or truth["name"] in wanted]


class Progress:
    """How many are done, and when the rest will be."""

    def __init__(self, count):
        self.count, self.done, self.begun, self.fresh = count, 0, time.monotonic(), 0

    def one(self):
        self.done += 1
        spent = time.monotonic() - self.begun
        left = spent / self.done * (self.count - self.done)
        if sys.stderr.isatty():
            print(f"\r{self.done} of {self.count} programs, about {left / 60:.0f} min left   ", end="" if self.done < self.count else "\n", file=sys.stderr, flush=True)
        elif self.done % 10 == 0 or self.done == self.count:
            print(f"{self.done} of {self.count} programs after {spent / 60:.1f} min, about {left / 60:.0f} min left", file=sys.stderr, flush=True)


def open_failures(rows, keep):
    """Which programs were judged wrongly, and in what."""
    for row in rows:
        wrong = [] if row["right"] else [f"verdict {row['found']}, truth {row['truth']}"]
        wrong += [f"leak {index} ({leak.get('kind', '')}, {leak['size']}): " + ", ".join(name for name in ("listed", "holder", "cause", "process") if leak.get(name) is False) for index, leak in enumerate(row["leaks"])
                  if any(leak.get(name) is False for name in ("listed", "holder", "cause", "process")) and leak["size"] != "tiny" and not leak["late"]]
        wrong += [f"leak {index}: rate {leak['ratio']:.2f} of the truth by {leak['unit']}" for index, leak in enumerate(row["leaks"]) if "ratio" in leak and not 1 / 1.15 <= leak["ratio"] <= 1.15 and leak["size"] == "big"]
        if row.get("problem"):
            wrong.append(row["problem"])
        if wrong:
            print(f"{os.path.join(keep, row['name'] + '.json')}\n    " + "\n    ".join(wrong))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--programs", type=int, default=500)
    options.add_argument("--from", dest="first", type=int, default=0, help="the number of the first generated program")
    options.add_argument("--seed", help="another seed than the hash of the commit")
    options.add_argument("--cases", action="append", help="a folder of programs with their truths")
    options.add_argument("--names", help="only these, with commas between them")
    options.add_argument("--quick", action="store_true", help="generated programs of 3 s or so, for a test")
    options.add_argument("--jobs", type=int, default=int(os.environ.get("JOBS") or 2))
    options.add_argument("--results", help="folder for answers, run files and figures")
    options.add_argument("--afresh", action="store_true", help="forget what the results folder holds")
    options.add_argument("--rejudge", action="store_true")
    options.add_argument("--open", action="store_true")
    options.add_argument("--bars", action="store_true")
    options.add_argument("--right", type=float, help="exit code 1 when fewer than this share of the verdicts is right, or a program failed or has no answer")
    options = options.parse_args()
    commit, clean = seed_of_commit()
    seed = options.seed or commit
    label = "cases" if options.cases else seed[:12] if options.seed is None else re.sub(r"\W", "_", options.seed)
    results = os.path.abspath(options.results or os.path.join(ROOT, "build", "judge", f"{commit[:12]}{'' if clean else '-changed'}" + (f"-{label}" if options.seed or options.cases else "")))
    keep = os.path.join(results, "answers")
    if options.afresh:
        for part in ("answers", "programs"):
            shutil.rmtree(os.path.join(results, part), ignore_errors=True)
    os.makedirs(keep, exist_ok=True)
    if not os.access(MILLPOND, os.X_OK):
        raise SystemExit(f"judge: there is no program {MILLPOND}; build it (make), or name another in MILLPOND")
    if not options.cases:
        print(f"seed {seed}" + ("" if options.seed is None and clean else ": the tree is not as committed, so these programs may have been seen; the figures must not be told as those of unseen seeds" if options.seed is None else
              ": given by hand, so these programs may have been seen"), flush=True)
    cases = cases_of(options, results, seed)
    if len({truth["name"] for truth in cases}) != len(cases):
        raise SystemExit("judge: two programs have the same name; judge their folders one after the other")
    present = [truth for truth in cases if truths.python_of(truth)]
    missing = len(cases) - len(present)
    progress, rows = Progress(len(present)), []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(judge_one, truth, keep, options.rejudge) for truth in present]):
            if done.result() is not None:
                rows.append(done.result())
            progress.one()
    rows.sort(key=lambda row: row["name"])
    found = figures.all_figures(rows)
    found.update(seed=None if options.cases else seed, unseen=bool(not options.cases and options.seed is None and clean), commit=commit, not_run=missing, millpond=MILLPOND)
    with open(os.path.join(results, "figures.json"), "w") as file:
        json.dump(found, file, indent=1)
    with open(os.path.join(results, "rows.json"), "w") as file:
        json.dump(rows, file, indent=1)
    said = figures.text(found) + (f"\n\n{missing} programs were not run: their interpreter is not here" if missing else "")
    with open(os.path.join(results, "figures.txt"), "w") as file:
        file.write(said + "\n")
    print(said + f"\n\nkept in {results}")
    if options.open:
        open_failures(rows, keep)
    if options.bars and any(figures.met(name, figure) is False for name, figure in found["figures"].items()):
        return 1
    if options.right is not None:
        wrong = [row["name"] for row in rows if row["found"] == "none" or row["problem"]]
        if wrong or sum(row["right"] for row in rows) < options.right * len(rows):
            print(f"judge: {len(wrong)} failed or without an answer; {sum(row['right'] for row in rows)} of {len(rows)} verdicts right, at least {options.right:.0%} are wanted")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
