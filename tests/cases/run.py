#!/usr/bin/env python3
"""Watches training programs whose memory is known, and compares what the doctor says with the truth.

  run.py [NAME ...] [--folder programs] [--keep DIR] [--bars]

A case is NAME.py with NAME.json (README.md has its fields). Programs that need torch run under the system's python3, others under the peers'
environment; a case whose packages are missing is skipped and said so. --bars ends with 1 unless: the verdict is right on all, bytes per period
within 20 % on the leaks, cause and line right on 90 % of the leaks, no leak on a leak-free case."""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PEERS = os.path.join(os.environ.get("MILLPOND_PEERS", os.path.join(ROOT, ".venv-peers")), "bin", "python")
MILLPOND = os.environ.get("MILLPOND", os.path.join(ROOT, "build", "bin", "millpond"))
PER_MARK = {"epoch", "line", "fit", "model", "compile", "run"}  # our units that come once between two marks of a case


def python_for(case):
    """The interpreter that has the case's packages, or None."""
    wanted = case.get("packages", [])
    for python in (["/usr/bin/python3"] if "torch" in wanted else [PEERS, sys.executable]):
        if not os.path.exists(python):
            continue
        check = "import importlib.util, sys; sys.exit(any(importlib.util.find_spec(m) is None for m in sys.argv[1:]))"
        if subprocess.run([python, "-c", check, *wanted]).returncode == 0:
            return python
    return None


def bytes_ratio(case, finding):
    """What was found per period over what is true, by the closer of the two ways to count."""
    truths = [b for b in (case.get("bytes_per_unit"), case.get("kept_bytes_per_unit")) if b]
    if not truths or not finding:
        return None
    found = finding["bytes_per_unit"]
    ratios = [found / (truth * case.get("units_per_mark", 1)) for truth in truths] if finding["unit"] in PER_MARK else []
    if finding["unit"] == case["unit"] or not ratios:
        units = case.get("units_per_call", 1) if finding["unit"] == "call" else 1
        ratios += [found / (truth * units) for truth in truths]
    return min(ratios, key=lambda r: abs(r - 1))


def judge(case, result):
    """The four answers: verdict, bytes, cause, line; None where the truth has none."""
    finding = result["findings"][0] if result["findings"] else None
    leak = case["verdict"] == "leak"
    answer = {"verdict": result["verdict"] == case["verdict"] or result["verdict"] in case.get("also_accept", []), "bytes": None, "cause": None, "line": None}
    if leak:
        ratio = bytes_ratio(case, finding)
        answer["bytes"] = ratio is not None and 0.8 <= ratio <= 1.25
        answer["ratio"] = ratio
        answer["cause"] = bool(finding) and finding["cause"] == case["cause"]
        blame = case.get("blame")
        if blame:
            lines = [blame["line"], *blame.get("also_lines", [])]
            found = (finding or {}).get("blame") or {}
            answer["line"] = os.path.basename(found.get("file", "")) == blame["file"] and found.get("line") in lines
    answer["false_alarm"] = result["verdict"] == "leak" and not leak
    return answer


def run_case(name, folder, keep):
    with open(os.path.join(folder, name + ".json")) as f:
        case = json.load(f)
    python = python_for(case)
    if python is None:
        return case, None, "packages missing: " + " ".join(case["packages"])
    target = os.path.join(keep, name)
    for old in glob.glob(target + ".*"):
        os.remove(old)
    env = dict(os.environ, PYTHONUNBUFFERED="1", CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="2", PYTHONDONTWRITEBYTECODE="1", MPLBACKEND="Agg")
    with open(target + ".log", "w") as log:
        done = subprocess.run([MILLPOND, "watch", "--quiet", "-o", target + ".pond", "--json", target + ".result", "--", python, name + ".py"], cwd=folder,
                              env=env, stdout=log, stderr=subprocess.STDOUT, timeout=600)
    if not os.path.exists(target + ".result"):
        return case, None, f"no result (exit {done.returncode}); see {target}.log"
    with open(target + ".result") as f:
        return case, json.load(f), None if done.returncode == 0 else f"the program ended with {done.returncode}"


def mark(value):
    return {None: "-", True: "ok", False: "WRONG"}[value]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--folder", default=os.path.join(HERE, "programs"))
    parser.add_argument("--keep", help="folder for run files, results and outputs")
    parser.add_argument("--bars", action="store_true")
    args = parser.parse_args()
    folder = os.path.abspath(args.folder)
    names = args.names or sorted(os.path.basename(p)[:-5] for p in glob.glob(os.path.join(folder, "*.json")))
    keep = args.keep or tempfile.mkdtemp(prefix="millpond_cases_")
    os.makedirs(keep, exist_ok=True)
    keep = os.path.abspath(keep)
    print(f"{'case':<22} {'truth':<14} {'found':<14} {'cause':<6} {'found':<6} {'verdict':<8} {'bytes':<12} {'cause':<6} {'line':<7} {'s':>5}", flush=True)
    count = {k: [0, 0] for k in ("verdict", "bytes", "cause", "line", "cause and line")}
    alarms, skipped = 0, 0
    confusion = {}
    for name in names:
        start = time.time()
        case, result, problem = run_case(name, folder, keep)
        if result is None:
            print(f"{name:<22} {case['verdict']:<14} {problem}", flush=True)
            skipped += problem.startswith("packages")
            if not problem.startswith("packages"):
                count["verdict"][1] += 1
            continue
        a = judge(case, result)
        finding = result["findings"][0] if result["findings"] else {}
        ratio = f"{mark(a['bytes'])} {a['ratio']:.2f}" if a.get("ratio") is not None else mark(a["bytes"])
        print(f"{name:<22} {case['verdict']:<14} {result['verdict']:<14} {case['cause']:<6} {finding.get('cause') or '':<6} {mark(a['verdict']):<8} {ratio:<12} "
              f"{mark(a['cause']):<6} {mark(a['line']):<7} {time.time() - start:>5.0f}{'  ' + problem if problem else ''}", flush=True)
        both = None if a["line"] is None else a["line"] and a["cause"]
        for key, value in (*a.items(), ("cause and line", both)):
            if key in count and value is not None:
                count[key][0] += value
                count[key][1] += 1
        alarms += a["false_alarm"]
        confusion[case["verdict"], result["verdict"]] = confusion.get((case["verdict"], result["verdict"]), 0) + 1
    print("\n" + ", ".join(f"{k} {good} of {all_}" for k, (good, all_) in count.items()) + f"; false alarms {alarms}, skipped {skipped}")
    print("truth -> found: " + ", ".join(f"{t} -> {f} {n}" for (t, f), n in sorted(confusion.items())))
    if args.bars:
        good, leaks = count["cause and line"]
        sys.exit(not (count["verdict"][0] == count["verdict"][1] and count["bytes"][0] == count["bytes"][1] and good >= 0.9 * leaks and alarms == 0))


if __name__ == "__main__":
    main()
