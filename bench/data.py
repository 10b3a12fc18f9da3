#!/usr/bin/env python3
"""Data pipelines beside tf.data on the same files and the same work, in turn, each run in a process of its own. `make bench` calls it.

  data.py [--rounds N] [--build FOLDER]

arrays: from_arrays, shuffle, batch 128, prefetch (tf.data shuffles through a buffer of 10,000, ours over all rows);
csv: 200,000 rows of ten numbers and a label, batch 256; images: 300 JPEGs decoded, resized, cropped, flipped, brightened, batch 32.
Numbers of elements and sums of values are compared before times are. Least with least; memory: our most with their least."""
import argparse
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
PEERS = os.path.join(os.environ.get("MILLPOND_PEERS", os.path.join(ROOT, ".venv-peers")), "bin", "python")
WORKS = {"arrays": ["arrays"], "csv": ["csv", "csv_lines"], "images": ["images"]}
EPOCHS = {"arrays": 4, "csv": 4, "images": 5}
MIB = 1 << 20


def start(command):
    done = subprocess.run(command, env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"data: {' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1]) if done.stdout.strip() else {}


def rate(run):
    """Elements a second of the best epoch after the first, which also pays for starting and for the check."""
    return run["elements"] / min(run["seconds"][1:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    args = parser.parse_args()
    ours = os.path.join(args.build, "bench", "data", "pipelines")
    tf = [PEERS, os.path.join(HERE, "data", "tf_pipelines.py")]
    folder = os.path.join(args.build, "bench", "pipelines")
    if not os.path.exists(os.path.join(folder, "done")):
        start(tf + ["make", folder])
        open(os.path.join(folder, "done"), "w").close()
    report, missed, wrong = {}, [], []
    print(f"  {'':<8} {'millpond /s':>14} {'tf.data /s':>14} {'faster':>8} {'peak MiB':>10} {'tf.data':>10} {'less':>8}")
    for work, peers in WORKS.items():
        mine, theirs = [], []
        for i in range(args.rounds):
            def run_ours():
                mine.append(start([ours, work, folder, str(EPOCHS[work])]))

            def run_theirs():
                for peer in peers:
                    theirs.append(start(tf + [peer, folder, str(EPOCHS[work])]))
            for one in [run_ours, run_theirs] if i % 2 == 0 else [run_theirs, run_ours]:  # nobody is always first
                one()
        a, b = mine[0], theirs[0]
        if a["elements"] != b["elements"] or a["sum_y"] != b["sum_y"]:
            wrong.append(f"{work}: {a['elements']} elements and labels {a['sum_y']}, tf.data {b['elements']} and {b['sum_y']}")
        # Images are changed at random: their mean agrees, their values do not.
        if abs(a["sum_x"] - b["sum_x"]) > (0.02 if work == "images" else 1e-6) * max(abs(b["sum_x"]), 1e3):
            wrong.append(f"{work}: values sum up to {a['sum_x']}, tf.data {b['sum_x']}")
        fast, slow = max(map(rate, mine)), max(map(rate, theirs))
        memory, more = max(r["rss_peak"] for r in mine), min(r["rss_peak"] for r in theirs)
        print(f"  {work:<8} {fast:>14,.0f} {slow:>14,.0f} {fast / slow:>7.2f}x {memory / MIB:>10.1f} {more / MIB:>10.1f} {more / memory:>7.2f}x", flush=True)
        missed += [f"{work} speed"] * (fast <= slow) + [f"{work} memory"] * (memory >= more)
        report[work] = {"millpond": mine, "tf.data": theirs, "faster": fast / slow, "less_memory": more / memory}
    target = os.path.join(args.build, "bench_data.json")
    with open(target, "w") as out:
        json.dump(report, out, indent=1)
    print(f"data: {target}; " + ("ahead of tf.data everywhere" if not missed else "behind: " + ", ".join(missed)))
    if wrong:
        sys.exit("data: results are wrong, so the times mean nothing:\n  " + "\n  ".join(wrong))


main()
