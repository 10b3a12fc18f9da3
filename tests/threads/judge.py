#!/usr/bin/env python3
"""The doctor on programs written after public threads, beside the truth of each: verdict, line, false alarms.
    tests/threads/judge.py                the open half; tests/threads/judge.py --only prom   some of it
    tests/threads/judge.py --sealed       the sealed half: once, at the very end
Interpreters: THREADS_PYTHON (a virtual environment with requirements.txt), .venv-peers, /usr/bin/python3. A program whose interpreter is not here is counted as not run."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
MILLPOND = os.environ.get("MILLPOND") or os.path.join(SOURCE, "build", "bin", "millpond")
PYTHONS = {"threads": os.environ.get("THREADS_PYTHON", ""), "peers": os.path.join(SOURCE, ".venv-peers", "bin", "python"), "system": "/usr/bin/python3"}


def judged(path, python):
    """What the doctor says of one program."""
    with tempfile.TemporaryDirectory() as folder:
        command = [MILLPOND, "watch", "--quiet", "-o", "run.pond", "--json", "answer.json", "--", python, path]
        try:
            subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=240, env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", MPLBACKEND="Agg"))
            with open(os.path.join(folder, "answer.json")) as file:
                answer = json.load(file)
        except (subprocess.TimeoutExpired, OSError, ValueError) as error:
            return {"verdict": "none", "why": type(error).__name__}
    first = next((finding for finding in answer["findings"] if finding["sets_verdict"]), {})
    blame = first.get("blame") or {}
    born = [part["born"]["line"] for part in (answer.get("account") or {}).get("parts", []) if part.get("born")]
    return {"verdict": answer["verdict"], "cause": first.get("cause"), "line": blame.get("line"), "file": os.path.basename(blame.get("file") or ""), "holder": first.get("holder"), "chain": first.get("chain"),
            "rate": first.get("bytes_per_unit"), "unit": first.get("unit"), "born": born, "sentence": answer["sentence"]}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sealed", action="store_true")
    options.add_argument("--only", default="", help="programs whose names hold this")
    options.add_argument("--json", help="all answers, into this file")
    chosen = options.parse_args()
    folder = os.path.join(HERE, "sealed" if chosen.sealed else "open")
    rows, missing = [], 0
    for name in sorted(entry[:-5] for entry in os.listdir(folder) if entry.endswith(".json") and chosen.only in entry):
        with open(os.path.join(folder, name + ".json")) as file:
            truth = json.load(file)
        python = PYTHONS[truth["environment"]]
        if not os.access(python, os.X_OK):
            missing += 1
            continue
        told = judged(os.path.join(folder, name + ".py"), python)
        right = told["verdict"] == truth["kind"] or told["verdict"] in truth["also"]
        line = truth["leak"] and told.get("line") in truth["lines"] and told.get("file") == name + ".py"
        rows.append(dict(told, name=name, right=right, line_right=line, truth=truth["kind"], leak=truth["leak"]))
        print("%-26s %-13s %-13s %s %s" % (name, truth["kind"], told["verdict"], "ok   " if right else "WRONG", "" if not truth["leak"] else "line ok" if line else "line %s of %s" % (told.get("line"), truth["lines"])), flush=True)
    leaks, others = [row for row in rows if row["leak"]], [row for row in rows if not row["leak"]]
    print("%d programs, %d not run for want of their interpreter" % (len(rows), missing))
    print("verdict right: %d of %d" % (sum(row["right"] for row in rows), len(rows)))
    print("leaks told as leaks: %d of %d; the line: %d" % (sum(row["verdict"] == "leak" for row in leaks), len(leaks), sum(row["line_right"] for row in leaks)))
    print("false alarms: %d of %d; unsure: %d" % (sum(row["verdict"] == "leak" for row in others), len(others), sum(row["verdict"] == "unsure" for row in rows)))
    if chosen.json:
        with open(chosen.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
