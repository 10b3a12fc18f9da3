#!/usr/bin/env python3
"""What watching costs: each program with and without, in turn, and beside memray, tracemalloc and Scalene.

  overhead.py [--pairs 20] [--works mlp_small,cnn_224,python_loop] [--others 2]

Printed for each: the ratio of a step (median over pairs of the run's median step with the same, and the 95 % interval of that median by bootstrap), of the least step
(which a busy neighbour disturbs less), of the whole run, and of user + system time (the collector's included). Bars: 1.03 a step (upper end 1.05) and 1.10 in all for Keras, 1.15 for the loop."""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
PEERS = os.path.join(os.environ.get("MILLPOND_PEERS", os.path.join(ROOT, ".venv-peers")), "bin", "python")
TRAINING = os.path.join(HERE, "peers.py")
MILLPOND = os.environ.get("MILLPOND", os.path.join(ROOT, "build", "bin", "millpond"))
WORKS = {"mlp_small": 12, "cnn_224": 10, "python_loop": 60}  # epochs, or rounds
BARS = {"mlp_small": (1.03, 1.10), "cnn_224": (1.03, 1.10), "python_loop": (1.15, 1.15)}


def ways(folder):
    return {
        "bare": [PEERS],
        "watch": [MILLPOND, "watch", "--quiet", "--force", "-o", os.path.join(folder, "run.pond"), "--", PEERS],
        "memray": [PEERS, "-m", "memray", "run", "-q", "-f", "-o", os.path.join(folder, "memray.bin")],
        "memray --native": [PEERS, "-m", "memray", "run", "-q", "-f", "--native", "-o", os.path.join(folder, "memray.bin")],
        "tracemalloc": [PEERS, "-X", "tracemalloc"],
        "scalene": [PEERS, "-m", "scalene", "run", "--memory", "-o", os.path.join(folder, "scalene.json")],
    }


def words(work, folder):
    """The program and its arguments: bench/peers.py trains with Keras on TensorFlow."""
    if work == "python_loop":
        return [os.path.join(HERE, "overhead", "python_loop.py"), str(WORKS[work])]
    data = os.path.join(folder, work)
    if not os.path.exists(data):
        subprocess.run([PEERS, TRAINING, "arrays", work, data], check=True)
    return [TRAINING, "keras-tf", work, os.path.join(data, "x.npy"), os.path.join(data, "y.npy"), str(WORKS[work])]


def run(command, program):
    """Median step, whole seconds, user + system seconds, least step; None when it failed."""
    env = dict(os.environ, CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3", PYTHONDONTWRITEBYTECODE="1")
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen([*command, *program], stdout=out, stderr=subprocess.DEVNULL, env=env)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - start
        out.seek(0)
        told = [json.loads(line) for line in out.read().splitlines() if line.startswith("{")]
    if process.returncode or not told:
        return None
    return told[-1]["us_per_step"], seconds, used.ru_utime + used.ru_stime, told[-1]["us_per_step_min"]


def interval(ratios):
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(2000))
    return medians[50], medians[-51]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--others", type=int, default=2, help="pairs for the other tools")
    parser.add_argument("--works", default=",".join(WORKS))
    args = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'work':<12} {'tool':<16} {'step':>6} {'95 %':>13} {'least':>6} {'whole':>6} {'user+sys':>8} {'pairs':>5}", flush=True)
        for work in args.works.split(","):
            for tool, command in ways(folder).items():
                pairs = args.pairs if tool == "watch" else args.others
                if tool == "bare" or not pairs:
                    continue
                ratios = []
                for i in range(pairs):
                    print(f"\r\033[K{work} {tool} {i + 1} of {pairs}", end="", file=sys.stderr, flush=True)
                    order = [["bare", ways(folder)["bare"]], [tool, command]]
                    seen = {name: run(c, words(work, folder)) for name, c in (order if i % 2 else order[::-1])}
                    if None not in seen.values():
                        ratios.append([a / b for a, b in zip(seen[tool], seen["bare"])])
                print("\r\033[K", end="", file=sys.stderr)
                if not ratios:
                    print(f"{work:<12} {tool:<16} does not run here")
                    continue
                step, whole, cpu, least = (statistics.median(r[k] for r in ratios) for k in range(4))
                low, high = interval([r[0] for r in ratios])
                bad = tool == "watch" and (step > BARS[work][0] or whole > BARS[work][1])
                missed += bad
                print(f"{work:<12} {tool:<16} {step:>5.3f}x {low:>5.3f}..{high:<5.3f} {least:>5.3f}x {whole:>5.2f}x {cpu:>7.2f}x {len(ratios):>5}{'  OVER THE BAR' if bad else ''}",
                      flush=True)
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
