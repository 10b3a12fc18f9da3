#!/usr/bin/env python3
"""Watches programs whose use of a GPU is known, and prints what the doctor said beside the truth. Needs a machine with an NVIDIA GPU, torch and JAX; the program to use is in the
environment variable MILLPOND, otherwise `millpond` on the PATH.

  run.py OUT                  all programs, and what the accounting costs a step that is bound by launches; recordings (JSON, at most 200 kB each) and all that was said go to OUT
  run.py OUT kept_losses ...  those alone
  run.py --stand-in OUT       programs on a stand-in for torch, which need no GPU
  OUT - is a folder that goes at the end.
"""

import argparse
import concurrent.futures
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import record

HERE = os.path.dirname(os.path.abspath(__file__))
kAtOnce = 4
kLongest = 150  # seconds of one program
kRate = 0.15  # a rate may be off by that


def millpond():
    found = os.environ.get("MILLPOND") or shutil.which("millpond")
    if not found:
        sys.exit("run.py: no millpond: set MILLPOND or the PATH")
    return found


def watch(name, folder, out, truth, paths):
    """Runs a program under the doctor: what it said, as JSON, and how long that took."""
    pond, answer = os.path.join(out, name + ".pond"), os.path.join(out, name + ".json")
    for path in (pond, answer):
        if os.path.exists(path):
            os.remove(path)
    environment = dict(os.environ, **truth.get("environment", {}))
    if paths:
        environment["PYTHONPATH"] = os.pathsep.join(paths + [environment.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    command = [millpond(), "watch", "--quiet", "-o", pond, "--json", answer, "--", sys.executable, os.path.join(folder, name + ".py")]
    begin = time.monotonic()
    with open(os.path.join(out, name + ".log"), "w") as log:
        code = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, env=environment, timeout=kLongest).returncode
    took = time.monotonic() - begin
    said = json.load(open(answer)) if os.path.exists(answer) else None
    return {"code": code, "said": said, "seconds": took, "pond": pond}


def line_of(path, text):
    lines = open(path).read().split("\n")
    return [number for number, line in enumerate(lines, 1) if line.strip() == text.strip()]


def judge(name, folder, truth, got):
    """(all right, words)"""
    if got["said"] is None:
        return False, "said nothing (exit code %s)" % got["code"]
    said = got["said"]
    source = os.path.join(folder, name + ".py")
    leak = next((f for f in said["findings"] if f["sets_verdict"]), None)
    words, right = [], True

    def tell(what, is_right, value):
        nonlocal right
        right = right and is_right
        words.append("%s %s%s" % (what, value, "" if is_right else " (WRONG)"))

    tell("verdict", said["verdict"] in truth["verdict"], said["verdict"])
    if leak is not None and "space" in truth:
        tell("space", leak["space"] == truth["space"], leak["space"])
    if "blame" in truth:
        place = (leak or {}).get("blame") or {}
        wanted = [number for key in ("blame", "or") if key in truth for number in line_of(source, truth[key])]
        tell("line", place.get("line") in wanted and os.path.basename(place.get("file", "")) == name + ".py", "%s:%s" % (os.path.basename(place.get("file", "") or "-"), place.get("line")))
        born = (leak or {}).get("born_at") or {}
        words.append("born %s" % born.get("line"))
        if "born" in truth:
            words[-1] += " of %s" % line_of(source, truth["born"])
    if "holder" in truth:
        held = " ".join([(leak or {}).get("holder", "")] + (leak or {}).get("chain", []))
        tell("holder", truth["holder"] in held, repr((leak or {}).get("holder", "")))
    if truth.get("bytes_per_round"):
        rate = (leak or {}).get("bytes_per_unit", 0) / truth["bytes_per_round"]
        tell("rate", abs(rate - 1) <= kRate, "%.3f of the truth" % rate)
    elif leak is not None and leak["verdict"] == "leak":
        words.append("rate %.2f MB" % (leak["bytes_per_unit"] / 1e6))
    words.append("cause %s" % ((leak or {}).get("cause") or "-"))
    if (leak or {}).get("forecast"):
        words.append("forecast %.0f s (%s)" % (leak["forecast"]["seconds"], leak["forecast"]["limit"]))
    words.append("%.1f s" % got["seconds"])
    return right, ", ".join(words) + "\n      " + said["sentence"]


def steps(out, turns, rounds):
    """What watching, and the GPU's part of it, cost a step that is bound by launches: the three in turns."""
    took = {"bare": [], "watched": [], "without": []}
    for turn in range(turns):
        for how in sorted(took, key=lambda one: (one != "bare", one) if turn % 2 else (one == "bare", one)):
            program = [sys.executable, os.path.join(HERE, "programs", "steps.py"), str(rounds)]
            environment = dict(os.environ)
            if how != "bare":
                pond = os.path.join(out, "steps-%s-%d.pond" % (how, turn))
                if os.path.exists(pond):
                    os.remove(pond)
                program = [millpond(), "watch", "--quiet", "-o", pond, "--"] + program
                if how == "without":
                    environment["MILLPOND_GPU"] = "0"
            text = subprocess.run(program, capture_output=True, text=True, env=environment, timeout=kLongest).stdout
            line = next((line.split() for line in text.splitlines() if line.startswith("step_us")), None)
            if line is not None:
                took[how].append((float(line[1]), float(line[3])))
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--stand-in", action="store_true")
    parser.add_argument("--no-steps", action="store_true", help="not what the accounting costs")
    parser.add_argument("--steps-only", action="store_true")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=40, help="of 200 steps each")
    options = parser.parse_args()
    if options.out == "-":
        with tempfile.TemporaryDirectory() as folder:
            options.out = folder
            return run(options)
    os.makedirs(options.out, exist_ok=True)
    return run(options)


def run(options):
    folder = os.path.join(HERE, "stand_in", "programs") if options.stand_in else os.path.join(HERE, "programs")
    paths = [os.path.join(HERE, "stand_in", "site-packages")] if options.stand_in else []
    truths = json.load(open(os.path.join(folder, "truths.json")))
    names = [] if options.steps_only else options.names or list(truths)
    begin = time.monotonic()
    results = {}

    def one(name):
        try:
            got = watch(name, folder, options.out, truths[name], paths)
        except subprocess.TimeoutExpired:
            return name, (False, "took longer than %d s" % kLongest)
        verdict = judge(name, folder, truths[name], got)
        try:
            record.make(got["pond"], os.path.join(options.out, "gpu_%s.record.json" % name), dict(truths[name], program=name), os.path.join(folder, name + ".py"))
        except Exception as error:
            verdict = (verdict[0], verdict[1] + "\n      not recorded: %r" % error)
        return name, verdict

    alone = [name for name in names if truths[name].get("alone")]
    with concurrent.futures.ThreadPoolExecutor(2 if options.stand_in else kAtOnce) as pool:
        for name, verdict in pool.map(one, [name for name in names if name not in alone]):
            results[name] = verdict
            print("%s %s: %s" % ("right" if verdict[0] else "WRONG", name, verdict[1]), flush=True)
    for name in alone:
        results[name] = one(name)[1]
        print("%s %s: %s" % ("right" if results[name][0] else "WRONG", name, results[name][1]), flush=True)
    print("%d of %d right, %.0f s" % (sum(right for right, _ in results.values()), len(results), time.monotonic() - begin), flush=True)
    summary = {"results": results}
    if not options.stand_in and not options.no_steps and not options.names:
        took = steps(options.out, options.turns, options.rounds)
        summary["steps"] = took
        for which, name in ((0, "median"), (1, "mean")):
            middle = {how: statistics.median(row[which] for row in rows) for how, rows in took.items() if rows}
            if len(middle) == 3:
                print("a step of %.1f us (%s of a run): watched %.4f x, without the GPU's part %.4f x, the GPU's part alone %.4f x" %
                      (middle["bare"], name, middle["watched"] / middle["bare"], middle["without"] / middle["bare"], middle["watched"] / middle["without"]), flush=True)
    json.dump(summary, open(os.path.join(options.out, "summary.json"), "w"), indent=1)
    print("%.0f s in all" % (time.monotonic() - begin), flush=True)
    return 0 if all(right for right, _ in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
