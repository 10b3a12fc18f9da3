#!/usr/bin/env python3
"""Runs generated programs alone, without the doctor, and holds their memory, as the system tells it, against their truth.

  bare.py FOLDER [NAME ...] [--jobs 2]

Of a program with leaks the growth of all its processes over the last rounds must be what the construction says, of one without leaks there must be none, within
20 % and what its noise moves. It finds wrong truths, not wrong doctors; nothing is written into the truth."""
import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import threading
import time

from environments import interpreter, variables

MB = 1e6


def tree_of(pid):
    found, todo = [], [pid]
    while todo:
        one = todo.pop()
        found.append(one)
        try:
            for task in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{task}/children") as file:
                    todo.extend(int(child) for child in file.read().split())
        except OSError:
            pass
    return found


def held_by(pid):
    """Bytes of a process: its share of anonymous and shared memory, and its open files that lie in memory and have no name any more."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        rows = {name: int(value) * 1024 for name, value in re.findall(r"^(\w+):\s+(\d+) kB", file.read(), re.M)}
    files = 0
    for number in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{number}"
        try:
            if os.readlink(path).startswith("/dev/shm/#") or (os.readlink(path).startswith("/dev/shm/tmp") and os.readlink(path).endswith("(deleted)")):
                files += os.stat(path).st_blocks * 512
        except OSError:
            pass
    return rows.get("Pss_Anon", rows.get("Anonymous", 0)) + rows.get("Pss_Shmem", 0) + files


def run(folder, truth, limit):
    """Exit code, seconds, [(time, bytes of the tree, its processes)], times of the marked lines, and the end of what was printed."""
    python = interpreter(truth["python"])
    begun = time.monotonic()
    child = subprocess.Popen([python, truth["name"] + ".py"], cwd=folder, env=variables(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    marks, tail = [], []

    def read():
        pattern = re.compile(truth["mark"]) if truth.get("mark") else None
        for line in child.stdout:
            tail.append(line)
            del tail[:-30]
            if pattern and pattern.search(line):
                marks.append(time.monotonic() - begun)
    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    series = []
    while child.poll() is None:
        now, total, living = time.monotonic() - begun, 0, 0
        for pid in tree_of(child.pid):
            try:
                total += held_by(pid)
                living += 1
            except (OSError, ProcessLookupError):
                pass
        if total:
            series.append((now, total, living))
        if now > limit:
            os.killpg(child.pid, 9)
        time.sleep(0.02)
    reader.join(5)
    child.stdout.close()
    return child.returncode, time.monotonic() - begun, series, marks, "".join(tail)


def level(series, at):
    """The level at a moment: the median of the last three samples before it."""
    before = [value for when, value, _ in series if when <= at][-3:]
    return sorted(before)[len(before) // 2] if before else series[0][1]


def moments(truth, seconds, marks, series):
    """The times at which rounds ended, as {round: time}."""
    rounds, every = truth["rounds"], truth.get("rounds_per_mark")
    if every and marks:
        return {(k + 1) * every - 1: when for k, when in enumerate(marks)}
    most = max(living for _, _, living in series)
    end = max(when for when, _, living in series if living == most) - 0.1
    if any(leak["still"] for leak in truth["leaks"]):  # what comes after the highest level is the interpreter letting go
        top = max(value for _, value, _ in series)
        end = min(end, max(when for when, value, _ in series if value >= 0.97 * top))
    if truth.get("seconds_per_round"):
        return {r: end - (rounds - 1 - r) * truth["seconds_per_round"] for r in range(rounds)}
    begin = min(2.0, 0.25 * seconds)
    return {r: begin + (end - begin) * (r + 1) / rounds for r in range(rounds)}


def compare(truth, seconds, series, marks):
    """What was measured over the last rounds beside what the construction says, and whether they agree."""
    at = moments(truth, seconds, marks, series)
    rounds = truth["rounds"]
    still = [leak for leak in truth["leaks"] if leak["still"]]
    noise = sum(part["bytes"] for part in truth["levels"])
    begin = max([leak["first_round"] for leak in still] or [0] + [leak["stop_round"] for leak in truth["leaks"]])
    first = max(begin + (rounds - begin) // 3, *(int(part["done_by"]) + 1 for part in truth["levels"] if part["done_by"] < rounds - 4), 0, 0)
    known = sorted(r for r in at if r >= first)
    if len(known) < 2:
        known = sorted(at)[-2:]
    # Ranks do not wait for each other: near the end some have ended already.
    first, last = known[0], known[-1 if truth["process"] != "ranks" else int(len(known) * 0.8)]
    unknown = any(leak["bytes_per_round"] is None for leak in still)
    rates = sum(leak["bytes_per_round"] or 0 for leak in still)
    expected = sum((leak["bytes_per_round"] or 0) * (last - max(first, leak["first_round"] - 1)) for leak in still)
    measured = level(series, at[last] - 0.005) - level(series, at[first] - 0.005)
    room = 0.2 * expected + 3 * MB + noise * (1.0 if truth["levels"] else 0.0) + (0 if truth.get("seconds_per_round") or marks else 0.15 * expected + 2 * rates)
    # glibc does not use freed aligned blocks again, which torch asks for; a framework's import and first calls go on allocating for a while.
    above = room + {"torch": 1.0 * expected + 8 * MB, "tensorflow": 0.2 * expected + 12 * MB, "keras": 0.2 * expected + 12 * MB, "jax": 6 * MB}.get(truth["framework"], 0)
    if not marks and not truth.get("seconds_per_round") and not unknown:
        # Nothing tells when a round was: only that all that was kept must have been there.
        kept = sum(leak["total_bytes"] for leak in still)
        return {"kept_mb": round(kept / MB, 2), "agrees": max(value for _, value, _ in series) >= 0.8 * kept}
    agrees = measured > 3 * MB if unknown else -room <= measured - expected <= above
    return {"rounds": [first, last], "expected_mb": round(expected / MB, 2), "measured_mb": round(measured / MB, 2), "room_mb": round(room / MB, 2), "agrees": agrees}


def check(folder, name):
    with open(os.path.join(folder, name, name + ".json")) as file:
        truth = json.load(file)
    if interpreter(truth["python"]) is None:
        return name, truth, None, f"no Python {truth['python']} here"
    code, seconds, series, marks, tail = run(os.path.join(folder, name), truth, truth["timeout_s"])
    if code != 0 or len(series) < 20:
        return name, truth, {"seconds": round(seconds, 1)}, f"ended with {code} after {seconds:.1f} s\n{tail[-1500:]}"
    if truth.get("rounds_per_mark") and len(marks) != truth["rounds"] // truth["rounds_per_mark"] * (truth["workers"] if truth["rhythm"] == "pool" else 1):
        return name, truth, {"seconds": round(seconds, 1)}, f"{len(marks)} lines of {truth['rounds']} rounds match {truth['mark']!r}\n{tail[-500:]}"
    if truth["workers"] > 1 and truth["rhythm"] == "pool":
        marks = marks[truth["workers"] - 1::truth["workers"]]
    answer = compare(truth, seconds, series, marks)
    return name, truth, dict(answer, seconds=round(seconds, 1), peak_mb=round(max(value for _, value, _ in series) / MB, 1)), "" if answer["agrees"] else "the construction says otherwise"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder")
    options.add_argument("names", nargs="*")
    options.add_argument("--jobs", type=int, default=2)
    chosen = options.parse_args()
    names = chosen.names or sorted(name for name in os.listdir(chosen.folder) if os.path.exists(os.path.join(chosen.folder, name, name + ".json")))
    wrong = missing = 0
    seconds = []
    with concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
        for name, truth, answer, problem in pool.map(lambda name: check(chosen.folder, name), names):
            missing += answer is None
            wrong += answer is not None and bool(problem)
            seconds += [answer["seconds"]] if answer else []
            holders = "+".join(leak["holder"]["kind"] for leak in truth["leaks"]) or "-"
            print(f"{name} {truth['kind']:<13} {truth['framework']:<6} {truth['python']:<6} {truth['rhythm']:<7} {truth['process']:<12} {holders[:40]:<40} {json.dumps(answer) if answer else ''} {problem or 'ok'}", flush=True)
    print(f"{len(names)} programs, {wrong} disagree or fail, {missing} without their Python here; {sum(seconds) / max(1, len(seconds)):.1f} s on average, {max(seconds, default=0):.1f} at most")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
