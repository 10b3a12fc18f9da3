#!/usr/bin/env python3
"""What watching costs: each program with and without, in turn, and beside memray, tracemalloc and Scalene.

  overhead.py [--pairs 20] [--works mlp_small,cnn_224,python_loop] [--others 2] [--tools watch,tracemalloc] [--json FILE]

A pair is four runs, bare - watched - watched - bare, so that a machine that slows down or speeds up evenly does neither side a favour. Where the two bare runs of a pair differ by more than
--agree the machine was busy with something else: the pair is made again (its watched runs are not looked at for this), at most three times as many as asked for. Printed: the ratio of a step
(median over pairs of the two runs' median epoch, and the 95 % interval of that median by bootstrap), the median over all pairs, disturbed ones too, of the least step (which a busy neighbour
disturbs less), of the whole run, and of user + system time (the collector's included). Bars: 1.03 a step (upper end 1.05) and 1.10 in all for Keras, 1.15 for the loop."""
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
BARS = {"mlp_small": (1.03, 1.05, 1.10), "cnn_224": (1.03, 1.05, 1.10), "python_loop": (1.15, 1.15, 1.15)}  # a step, the upper end of its interval, the whole run


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


class Run:
    """One run: microseconds a step by epoch, the first left out; whole and processor seconds. `steps` is empty when it failed."""

    def __init__(self, command, program):
        env = dict(os.environ, CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3", PYTHONDONTWRITEBYTECODE="1")
        start = time.perf_counter()
        with tempfile.TemporaryFile("w+") as out:
            process = subprocess.Popen([*command, *program], stdout=out, stderr=subprocess.DEVNULL, env=env)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.seconds = time.perf_counter() - start
            out.seek(0)
            told = [json.loads(line) for line in out.read().splitlines() if line.startswith("{")]
        self.processor = used.ru_utime + used.ru_stime
        self.steps = told[-1]["us_per_step_by_epoch"] if told and not process.returncode else []


class Pair:
    """Two runs with the tool between two without: the ratios of the median step, whole run, processor time and least step. `bare`: that of the two without."""

    def __init__(self, command, bare, program):
        before, one, two, after = self.runs = [Run(c, program) for c in (bare, command, command, bare)]
        self.ran = all(r.steps for r in self.runs)
        if self.ran:
            with_tool, without = one.steps + two.steps, before.steps + after.steps
            self.step = statistics.median(with_tool) / statistics.median(without)
            self.least = min(with_tool) / min(without)
            self.whole = (one.seconds + two.seconds) / (before.seconds + after.seconds)
            self.processor = (one.processor + two.processor) / (before.processor + after.processor)
            self.bare = statistics.median(after.steps) / statistics.median(before.steps)

    def quiet(self, agree):
        return self.ran and 1 / (1 + agree) <= self.bare <= 1 + agree


def interval(ratios):
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(2000))
    return medians[50], medians[-51]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--others", type=int, default=2, help="pairs for the other tools")
    parser.add_argument("--works", default=",".join(WORKS))
    parser.add_argument("--tools", default="", help="only these, with a comma between them")
    parser.add_argument("--agree", type=float, default=0.03, help="by how much the bare runs of a pair may differ (0.03)")
    parser.add_argument("--json", help="write every run's steps there")
    args = parser.parse_args()
    missed, everything = 0, []
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'work':<12} {'tool':<16} {'step':>6} {'95 %':>13} {'all':>7} {'least':>6} {'whole':>6} {'user+sys':>8} pairs  bare step, us", flush=True)
        for work in args.works.split(","):
            for tool, command in ways(folder).items():
                wanted = args.pairs if tool == "watch" else args.others
                if tool == "bare" or not wanted or (args.tools and tool not in args.tools.split(",")):
                    continue
                made, quiet = [], []
                while len(quiet) < wanted and len(made) < 3 * wanted:
                    print(f"\r\033[K{work} {tool}: {len(quiet)} of {wanted}, {len(made) - len(quiet)} disturbed", end="", file=sys.stderr, flush=True)
                    pair = Pair(command, ways(folder)["bare"], words(work, folder))
                    if not pair.ran:
                        break
                    made.append(pair)
                    quiet = [p for p in made if p.quiet(args.agree)]
                print("\r\033[K", end="", file=sys.stderr)
                everything.append({"work": work, "tool": tool, "pairs": [[vars(r) for r in p.runs] for p in made]})
                if not quiet:
                    print(f"{work:<12} {tool:<16} {'no quiet pair of ' + str(len(made)) if made else 'does not run here'}")
                    missed += tool == "watch"
                    continue
                middle = {name: statistics.median(getattr(p, name) for p in quiet) for name in ("step", "least", "whole", "processor")}
                low, high = interval([p.step for p in quiet])
                bars = BARS[work]
                bad = tool == "watch" and (middle["step"] > bars[0] or high > bars[1] or middle["whole"] > bars[2])
                missed += bad
                levels = [statistics.median(p.runs[0].steps) for p in quiet]
                print(f"{work:<12} {tool:<16} {middle['step']:>5.3f}x {low:>5.3f}..{high:<5.3f} {statistics.median(p.step for p in made):>5.3f}x {middle['least']:>5.3f}x {middle['whole']:>5.2f}x"
                      f" {middle['processor']:>7.2f}x {len(quiet)} of {len(made)}  {statistics.median(levels):.0f} ({min(levels):.0f}..{max(levels):.0f})"
                      f"{'  OVER THE BAR' if bad else ''}", flush=True)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(everything, file)
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
