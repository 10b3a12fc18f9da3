"""Runs the programs bare, one after another, reads their resident memory from outside, and writes lines and "measured" into each truth.

usage: measure.py [--every SECONDS] [--missing] [--lines] [NAME ...]   (all programs when no name is given)
Interpreters: THREADS_PYTHON, PEERS_PYTHON, SYSTEM_PYTHON in the environment, else .venv-threads, .venv-peers of the repository and /usr/bin/python3.
"""
import argparse
import ast
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MB = 1e6
INTERPRETERS = {
    "threads": os.environ.get("THREADS_PYTHON", str(ROOT / ".venv-threads/bin/python")),
    "peers": os.environ.get("PEERS_PYTHON", str(ROOT / ".venv-peers/bin/python")),
    "system": os.environ.get("SYSTEM_PYTHON", "/usr/bin/python3"),
}
LIMIT_S = 180


def tree_of(pid):
    """The process and all its descendants that live now."""
    found, todo = [], [pid]
    while todo:
        one = todo.pop()
        found.append(one)
        try:
            for task in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{task}/children") as f:
                    todo.extend(int(child) for child in f.read().split())
        except OSError:
            pass
    return found


def memory_of(pid):
    """Pss, private bytes and resident bytes by kind of mapping; None when the process is gone."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as f:
            rows = dict(re.findall(r"^(\w+):\s+(\d+) kB", f.read(), re.M))
    except OSError:
        return None
    if "Pss" not in rows:
        return None
    kb = {key: int(value) * 1024 for key, value in rows.items()}
    return {"pss": kb["Pss"], "private": kb["Private_Clean"] + kb["Private_Dirty"], "rss": kb["Rss"],
            "anon": kb.get("Pss_Anon", 0), "file": kb.get("Pss_File", 0), "shmem": kb.get("Pss_Shmem", 0)}


class Marks(threading.Thread):
    """Reads the program's output and notes when a line matched."""

    def __init__(self, pipe, pattern, begun):
        super().__init__(daemon=True)
        self.pipe, self.pattern, self.begun, self.times = pipe, re.compile(pattern) if pattern else None, begun, []

    def run(self):
        for line in self.pipe:
            if self.pattern and self.pattern.search(line):
                self.times.append(time.monotonic() - self.begun)


def run_bare(program, truth, every):
    environment = dict(os.environ, PYTHONUNBUFFERED="1", CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="2", PYTHONWARNINGS="ignore",
                       PYTHONDONTWRITEBYTECODE="1")
    if "warn" in truth["name"]:
        del environment["PYTHONWARNINGS"]
    with tempfile.TemporaryDirectory() as folder, open(Path(folder) / "stderr", "w+") as errors:
        begun = time.monotonic()
        child = subprocess.Popen([INTERPRETERS[truth["environment"]], str(program)], cwd=folder, env=environment,
                                 stdout=subprocess.PIPE, stderr=errors, text=True, errors="replace")
        marks = Marks(child.stdout, truth.get("mark"), begun)
        marks.start()
        series = []  # (time, {pid: memory})
        while child.poll() is None and time.monotonic() - begun < LIMIT_S:
            now = time.monotonic() - begun
            seen = {pid: memory for pid in tree_of(child.pid) if (memory := memory_of(pid))}
            if child.pid in seen:
                series.append((now, seen))
            time.sleep(max(0.0, every - (time.monotonic() - begun - now)))
        if child.poll() is None:
            child.kill()
        code = child.wait()
        marks.join(2)
        errors.seek(0)
        return child.pid, code, time.monotonic() - begun, series, marks.times, errors.read()


def own(memory):
    """What would be gone with the process: its private bytes, or its anonymous and shared memory where another process maps that too."""
    return max(memory["private"], memory["anon"] + memory["shmem"])


def median(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else 0


def level(points, at, width):
    """The median level of the samples near a time."""
    near = [value for when, value in points if abs(when - at) <= width]
    return median(near) if near else min(points, key=lambda point: abs(point[0] - at))[1]


def slope(pairs):
    n = len(pairs)
    if n < 3:
        return 0.0
    mean_x, mean_y = sum(x for x, _ in pairs) / n, sum(y for _, y in pairs) / n
    below = sum((x - mean_x) ** 2 for x, _ in pairs)
    return sum((x - mean_x) * (y - mean_y) for x, y in pairs) / below if below else 0.0


def summarise(pid, seconds, series, marks, truth):
    """Levels of the process the truth speaks of (the child that grew most, for a child's leak) and of the whole tree."""
    tree = [(when, sum(memory["pss"] for memory in seen.values())) for when, seen in series]
    main = [(when, own(seen[pid])) for when, seen in series]
    points, watched = main, "main"
    children = {}
    for when, seen in series:
        for one, memory in seen.items():
            if one != pid:
                children.setdefault(one, []).append((when, own(memory)))
    if truth["process"] == "tree":
        points, watched = tree, "tree"
    elif truth["process"] != "main" and children:
        lasting = {one: line for one, line in children.items() if len(line) > 5}
        chosen = max(lasting or children, key=lambda one: max(v for _, v in children[one]) - children[one][0][1])
        points, watched = children[chosen], "child"
    first, last = points[0][0], points[-1][0]
    width = (last - first) / 40
    if len(marks) >= 4:
        quarters = [marks[int((len(marks) - 1) * q)] for q in (0, 0.25, 0.5, 0.75, 1)]
    else:
        # The last levels of a silent program are those of its end, when Python frees what it held.
        quarters = [first + (last - first) * q for q in (0.02, 0.25, 0.5, 0.75, 0.93)]
    # The level at a mark is that just before it: after the last mark the program ends.
    before = width if len(marks) >= 4 else 0
    # The 24 levels go over the rounds where marks tell them, else over the whole run.
    from_at, to_at = (marks[0], marks[-1]) if len(marks) >= 6 else (first, last)
    levels = [round(level(points, at - before, width) / MB, 1) for at in quarters]
    measured = {
        "watched": watched, "seconds": round(seconds, 1), "samples": len(points), "processes": 1 + len(children),
        "first_mb": levels[0], "quarter_mb": levels[1], "middle_mb": levels[2], "three_quarters_mb": levels[3], "last_mb": levels[4],
        "peak_mb": round(max(v for _, v in points) / MB, 1), "last_half_growth_mb": round(levels[4] - levels[2], 1),
        "tree_middle_mb": round(level(tree, quarters[2], width) / MB, 1), "tree_last_mb": round(level(tree, quarters[4], width) / MB, 1),
        "tree_peak_mb": round(max(v for _, v in tree) / MB, 1), "marks": len(marks),
        "series_mb": [round(level(points, from_at + (to_at - from_at) * (i + 0.5) / 24, (to_at - from_at) / 80) / MB, 1)
                      for i in range(24)],
    }
    at_end = series[max(0, len(series) - 4)][1].get(pid)
    if at_end:
        measured["main_at_end_mb"] = {key: round(at_end[key] / MB, 1) for key in ("rss", "anon", "file", "shmem")}
    if len(marks) >= 6:
        later = marks[len(marks) // 2:]
        per_mark = slope([(i, level(points, at - 0.05, 0.05)) for i, at in enumerate(later)])
        measured["bytes_per_round"] = round(per_mark * len(marks) / truth["rounds"])
    return measured


def check(truth, measured):
    """Says where the measured growth contradicts the construction; an empty string when it does not."""
    total = truth["bytes_per_round"] * truth["rounds"] / truth.get("children", 1) / MB
    half = measured["last_half_growth_mb"]
    if truth["leak"]:
        if measured["last_mb"] - measured["first_mb"] < 0.7 * total * (1 - truth.get("begins_at", 0)):
            return f"a leak of {total:.1f} MB by construction, but it grew from {measured['first_mb']} to {measured['last_mb']} MB"
        if half < 0.35 * total or half > 1.4 * total:
            return f"a leak of {total:.1f} MB by construction grew {half} MB in its last half"
        return ""
    tail = measured["series_mb"][-4:] if truth.get("plateau_at", 0) > 0.6 else measured["series_mb"][-12:]
    grown = max(tail[-2:]) - max(tail[0], tail[1])
    if grown > max(3.0, 0.03 * measured["last_mb"]):
        return f"no leak by construction, but its last part grew {grown:.1f} MB"
    return ""


def find_lines(program, truth):
    text = program.read_text().splitlines()
    for numbers, snippets in (("lines", "line_text"), ("born_lines", "born_text")):
        truth[numbers] = []
        for snippet in truth[snippets]:
            hits = [number for number, line in enumerate(text, 1) if snippet in line]
            if len(hits) != 1:
                raise SystemExit(f"{program.name}: {snippet!r} is on {len(hits)} lines; it must be on exactly one. Mend {program.stem}.json.")
            truth[numbers] += hits


def check_form(program, truth):
    """A program lies where the hash of its name puts it and begins with the three lines that name its thread."""
    even = int(hashlib.sha256(program.stem.encode()).hexdigest()[0], 16) % 2 == 0
    if program.parent.name != ("sealed" if even else "open"):
        raise SystemExit(f"{program} must lie in {'sealed' if even else 'open'}/, for its name decides that. Move it with its truth.")
    header = (ast.get_docstring(ast.parse(program.read_text())) or "").splitlines()
    if len(header) != 3 or header[1] != truth["thread"]:
        raise SystemExit(f"{program.name}: the docstring must have three lines and the second must be {truth['thread']}. Mend one of the two.")
    if truth["leak"] != (truth["kind"] == "leak") or (truth["leak"] and not truth["line_text"]):
        raise SystemExit(f"{program.stem}.json: a leak has kind leak and a line; anything else has neither.")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--every", type=float, default=0.05, help="seconds between two samples")
    options.add_argument("--lines", action="store_true", help="find the line numbers again and run nothing")
    options.add_argument("--missing", action="store_true", help="only programs that were not measured yet")
    options.add_argument("names", nargs="*")
    options = options.parse_args()
    programs = sorted(path for side in ("open", "sealed") for path in (HERE / side).glob("*.py")
                      if not options.names or path.stem in options.names)
    contradictions = 0
    for program in programs:
        beside = program.with_suffix(".json")
        truth = json.loads(beside.read_text())
        check_form(program, truth)
        find_lines(program, truth)
        if not options.lines and not os.path.exists(INTERPRETERS[truth["environment"]]):
            raise SystemExit(f"{program.stem} needs the interpreter {INTERPRETERS[truth['environment']]}, which is not there. "
                             f"Make it (README.md) or name another in {truth['environment'].upper()}_PYTHON.")
        if not options.lines and not (options.missing and truth.get("measured", {}).get("check") == "ok"):
            pid, code, seconds, series, marks, errors = run_bare(program, truth, options.every)
            if code != 0 or len(series) < 20:
                print(f"{program.stem}: exit {code} after {seconds:.1f} s\n{errors[-1500:]}", flush=True)
                contradictions += 1
                continue
            note = truth.get("measured", {}).get("note")
            truth["measured"] = summarise(pid, seconds, series, marks, truth)
            told = check(truth, truth["measured"])
            truth["measured"]["check"] = told or "ok"
            if note:
                truth["measured"]["note"] = note
            contradictions += bool(told)
            measured = truth["measured"]
            print(f"{program.stem:28} {truth['kind']:13} {seconds:5.1f} s  {measured['first_mb']:7.1f} {measured['middle_mb']:7.1f} "
                  f"{measured['last_mb']:7.1f} MB  half {measured['last_half_growth_mb']:+7.1f}  a round {measured.get('bytes_per_round', '-')} of "
                  f"{truth['bytes_per_round']}  {told or 'ok'}", flush=True)
        beside.write_text(json.dumps(truth, indent=1) + "\n")
    return 1 if contradictions else 0


if __name__ == "__main__":
    sys.exit(main())
