#!/usr/bin/env python3
"""Runs each generated program alone and writes what it really does into its JSON.

  measure.py FOLDER [NAME ...] [--again] [--no-replace]

A program that does not behave as its label says is dropped, and another one of the same verdict is written in its place."""
import argparse
import collections
import glob
import json
import os
import re
import select
import statistics
import subprocess
import time

from generate import save, write_pair
from run import python_for

PAGE = os.sysconf("SC_PAGE_SIZE")
MB = 1e6

PROBE = r"""
import ctypes, gc, json, os, re, runpy, sys, builtins
target, mark, at, result = sys.argv[1], re.compile(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
sys.argv = [target]
sys.path.insert(0, os.getcwd())
seen = 0
def rss():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
class Tee:
    def __init__(self, inner):
        self.inner, self.part = inner, ""
    def write(self, text):
        global seen
        self.inner.write(text)
        self.part += text
        while "\n" in self.part:
            line, self.part = self.part.split("\n", 1)
            if mark.search(line):
                seen += 1
                if seen == at:
                    before = rss(); n = gc.collect(); a = rss(); ctypes.CDLL(None).malloc_trim(0); b = rss()
                    json.dump({"mark": at - 1, "rss_mb": round(before / 1e6, 1), "collected": n, "after_gc_mb": round(a / 1e6, 1), "after_trim_mb": round(b / 1e6, 1)}, open(result, "w"))
    def __getattr__(self, name):
        return getattr(self.inner, name)
sys.stdout, sys.stderr = Tee(sys.stdout), Tee(sys.stderr)
runpy.run_path(target, run_name="__main__")
"""


def tree(pid):
    """A process and its descendants."""
    pids = [pid]
    for task in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            for child in open(task).read().split():
                pids += tree(int(child))
        except OSError:
            pass
    return pids


def private_dirty(pid):
    total = 0
    for p in tree(pid):
        try:
            total += int(re.search(r"Private_Dirty:\s+(\d+)", open(f"/proc/{p}/smaps_rollup").read()).group(1)) * 1024
        except (OSError, AttributeError):
            pass
    return total


def run_once(folder, case, command, limit=240, more={}):
    """Runs a program alone. Returns exit code, seconds, RSS at the marks, highest RSS between marks, all samples, the output's tail, and the tree's private bytes."""
    env = dict(os.environ, PYTHONUNBUFFERED="1", CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="2", PYTHONDONTWRITEBYTECODE="1", MPLBACKEND="Agg",
               OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", **more)  # on a busy machine threads that wait for each other make a run ten times longer
    start = time.time()
    child = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0)
    os.set_blocking(child.stdout.fileno(), False)
    mark = re.compile(case["mark"]) if case.get("mark") else None
    whole_tree = case.get("measure") == "tree_private_dirty"
    marks, peaks, samples, dirty, rest, tail, peak = [], [], [], [], "", "", 0

    def rss():
        try:
            return int(open(f"/proc/{child.pid}/statm").read().split()[1]) * PAGE
        except (OSError, IndexError):
            return 0
    while True:
        ready, _, _ = select.select([child.stdout], [], [], 0.03)
        now = rss()
        if now:
            samples.append((time.time() - start, now))
            peak = max(peak, now)
        if ready:
            data = child.stdout.read()
            if data == b"":
                break
            rest += (data or b"").decode(errors="replace")
            tail = (tail + (data or b"").decode(errors="replace"))[-3000:]
            while "\n" in rest:
                line, rest = rest.split("\n", 1)
                if mark and mark.search(line):
                    if marks:
                        peaks.append(max(peak, now))
                    marks.append(now or (samples[-1][1] if samples else 0))
                    if whole_tree:
                        dirty.append(private_dirty(child.pid))
                    peak = 0
        if time.time() - start > limit:
            child.kill()
            break
    child.wait()
    return {"rc": child.returncode, "seconds": time.time() - start, "marks": marks, "peaks": peaks, "samples": samples, "tail": tail, "dirty": dirty}


def slope(values):
    n = len(values)
    if n < 2:
        return 0.0
    mx, my = (n - 1) / 2, sum(values) / n
    return sum((i - mx) * (v - my) for i, v in enumerate(values)) / sum((i - mx) ** 2 for i in range(n))


def kept_free(probe):
    """Nothing grows, and yet a good part of the process is free memory that the allocator keeps: both are true of it."""
    back = probe["rss_mb"] - probe["after_trim_mb"]
    return back > 15 and back > 0.25 * probe["rss_mb"]


def judge(case, run, probe):
    """ok, or what does not agree; also writes the numbers into the case."""
    verdict = case["verdict"]
    for old in [k for k in case if k.startswith("rss_") or k in ("check", "one_time_mb", "probe", "tree_private_dirty_series_mb", "slope_after_warmup_mb_per_mark")]:
        del case[old]
    case["seconds"] = round(run["seconds"], 1)
    if run["rc"] != 0:
        return f"exit {run['rc']}: {run['tail'][-300:]}"
    heavy = bool({"torch", "jax", "tensorflow", "matplotlib"} & set(case["packages"]))
    top = max(v for _, v in run["samples"])
    last_full = max(t for t, v in run["samples"] if v >= 0.97 * top) if verdict == "leak" else run["samples"][-1][0]  # what comes later is the interpreter going down
    if case.get("mark"):
        series = run["marks"]
        last_two = (run["dirty"] or series)[-2:]
        if verdict == "leak" and len(series) > 6 and last_two[1] < last_two[0]:
            series = series[:-1]  # read when the interpreter was going down already
        scale = 1.0
    else:  # no output: 20 moments, the time before the loop left out
        end = last_full * 0.93 if verdict != "leak" else last_full
        begin = end * (0.3 if heavy else 0.12)
        moments = [begin + (end - begin) * k / 19 for k in range(20)]
        series = [min(run["samples"], key=lambda s: abs(s[0] - m))[1] for m in moments]
        scale = None
    if len(series) < 6:
        return f"only {len(series)} marks"
    tree_series = run["dirty"][:len(series)] if case.get("measure") == "tree_private_dirty" else None
    mb = [round(v / MB, 1) for v in series]
    warm = case.get("plateau_from_mark", 0) if case.get("mark") else int(case.get("plateau_from_share", 0) * len(series)) + 1
    warm = max(warm, len(series) // 4)
    judged = (tree_series or series)[warm:]
    k = slope(judged)
    case["rss_start_mb"], case["rss_end_mb"], case["rss_peak_mb"] = mb[0], mb[-1], round(max(v for _, v in run["samples"]) / MB, 1)
    case["rss_series_per_epoch_mb"] = mb
    if case.get("mark"):
        case["rss_peak_between_marks_mb"] = [round(v / MB, 1) for v in run["peaks"]]
    if tree_series:
        case["tree_private_dirty_series_mb"] = [round(v / MB, 1) for v in tree_series]
    case["slope_after_warmup_mb_per_mark"] = round(k / MB, 3)
    if probe:
        case["probe"] = probe
    third = max(1, len(judged) // 3)
    first, last = statistics.median(judged[:third]), statistics.median(judged[-third:])
    if verdict == "leak":
        grown = judged[-1] - judged[0]
        later = slope(judged[len(judged) // 2:])
        expected = case.get("bytes_by_construction")
        per_unit = k / case["units_per_mark"] if scale else (series[-1] - series[0]) / case["units_total"] * end / (end - begin)
        case["measured_bytes_per_unit"] = round(per_unit)
        case["bytes_per_unit"] = round(expected if expected else per_unit)
        late = [v for v in run["samples"] if run["seconds"] * (0.5 if heavy else 0.2) < v[0] <= last_full]
        case["bytes_per_second"] = round((late[-1][1] - late[0][1]) / max(0.1, late[-1][0] - late[0][0]))
        if grown < 20e6:
            return f"grew only {grown / MB:.1f} MB"
        if later < 0.3 * k:
            return f"the later half grows by {later / MB:.2f} MB for each mark, all by {k / MB:.2f}"
        if expected and abs(per_unit / expected - 1) > (0.12 if scale else 0.25):
            return f"measured {per_unit:.0f} bytes for each unit, by construction {expected:.0f}"
        return "ok"
    case["bytes_per_unit"] = 0
    if verdict in ("reserve", "cache", "retention", "fragmentation"):
        before = min(v for _, v in run["samples"][:max(1, len(run["samples"]) // 10)])
        case["one_time_mb"] = round((last - (series[0] if verdict == "cache" else before)) / MB, 1)
    if verdict in ("flat", "reserve", "cache", "fragmentation"):
        limit = max(0.05 * first if heavy else 0.015 * first, 2e6)
        if tree_series:
            limit = 20e6
        if last - first > limit:
            return f"grew by {(last - first) / MB:.1f} MB after the warm-up"
    if verdict == "flat" and probe and kept_free(probe):
        case["also_accept"] = sorted({*case["also_accept"], "retention"})
    if verdict in ("reserve", "cache") and case["one_time_mb"] < 40:
        return f"only {case['one_time_mb']} MB once"
    if verdict in ("retention", "fragmentation"):
        if not probe:
            return "no probe"
        back = probe["rss_mb"] - probe["after_trim_mb"]
        held = max(mb) - min(mb) if heavy else probe["rss_mb"] - min(v for _, v in run["samples"][:5]) / MB - 20
        if verdict == "retention" and (back < 20 or back < 0.5 * held):
            return f"malloc_trim returned only {back:.1f} of {probe['rss_mb']} MB"
        if verdict == "fragmentation" and (back > 0.35 * probe["rss_mb"] or case["one_time_mb"] < 50):
            return f"malloc_trim returned {back:.1f} of {probe['rss_mb']} MB"
    return "ok"


def measure_one(folder, name):
    with open(os.path.join(folder, name + ".json")) as f:
        case = json.load(f)
    python = python_for(case)
    run = run_once(folder, case, [python, name + ".py"])
    probe = None
    if case["verdict"] in ("retention", "fragmentation", "flat") and run["rc"] == 0 and run["marks"]:
        result = os.path.join(folder, f".{name}.probe")
        run_once(folder, case, [python, "-c", PROBE, name + ".py", case["mark"], str(len(run["marks"])), result])
        if os.path.exists(result):
            with open(result) as f:
                probe = json.load(f)
            os.remove(result)
    check = judge(case, run, probe)
    case["check"] = check
    if check == "ok" and case["verdict"] == "leak" and "torch" in case["packages"] and not case.get("bytes_by_construction"):
        # Debian's torch asks for aligned blocks, and glibc does not use freed ones of these again: resident memory rises by more than what is kept.
        alone = dict(case)
        if judge(alone, run_once(folder, case, [python, name + ".py"], more={"MALLOC_MMAP_THRESHOLD_": "65536"}), None) == "ok":
            case["kept_bytes_per_unit"] = alone["bytes_per_unit"]
    save(folder, case)
    return case


def is_heavy(folder, name):
    with open(os.path.join(folder, name + ".json")) as f:
        return bool({"torch", "jax", "tensorflow"} & set(json.load(f)["packages"]))


def measure(folder, names, again, replace):
    names = names or sorted(os.path.basename(p)[:-5] for p in glob.glob(os.path.join(folder, "*.json")))
    todo = collections.deque(sorted(names, key=lambda name: is_heavy(folder, name)))  # the quick ones first
    good = bad = 0
    while todo:
        name = todo.popleft()
        path = os.path.join(folder, name + ".json")
        if not os.path.exists(path):
            continue
        with open(path) as f:
            case = json.load(f)
        if "check" in case and not again:
            good += case["check"] == "ok"
            bad += case["check"] != "ok"
            continue
        case = measure_one(folder, name)
        print(f"{name:<26} {case['verdict']:<14} {case['framework']:<17} {case.get('holder_kind', ''):<16} {case['bytes_per_unit']:>10} {case['seconds']:>5} s  {case['check']}", flush=True)
        if case["check"] == "ok":
            good += 1
            continue
        bad += 1
        made = case.get("made_from")
        if made and replace and made["attempt"] < 4:
            twin = name.endswith("_v2") or bool(case["leak_free_twin"])
            stem = name[:-3] if name.endswith("_v2") else name
            os.makedirs(os.path.join(folder, "dropped"), exist_ok=True)
            for gone in (stem + ".py", stem + ".json", stem + "_v2.py", stem + "_v2.json"):
                if os.path.exists(os.path.join(folder, gone)):
                    os.replace(os.path.join(folder, gone), os.path.join(folder, "dropped", gone))
            todo.extendleft(reversed(write_pair(folder, made["seed"], made["index"], made["verdict"], made["only_plain"], twin, made["attempt"] + 1)))
    print(f"{good} ok, {bad} not")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--again", action="store_true", help="measure what was measured before, too")
    parser.add_argument("--no-replace", action="store_true", help="leave a program that does not agree with its label where it is")
    args = parser.parse_args()
    measure(os.path.abspath(args.folder), args.names, args.again, not args.no_replace)


if __name__ == "__main__":
    main()
