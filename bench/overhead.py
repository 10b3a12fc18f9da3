#!/usr/bin/env python3
"""What watching costs: each program with and without, and beside memray, tracemalloc and Scalene.

  overhead.py [--pairs 20] [--works mlp_small,cnn_224,python_loop,prints] [--others 1] [--tools watch,tracemalloc] [--json FILE]

A step: a pair is two processes, one bare and one watched, that work in turn, an epoch each, and wait meanwhile; so both meet the same machine, which on shared hardware changes by 20 % within
seconds. The collector is stopped while the bare program works. A pair's ratio is the median of those of neighbouring epochs by the program's own clock; printed are the median over pairs and its
95 % interval by bootstrap, the same of pairs that are both bare (`noise`: what this way of measuring is good for), the same with the fastest epoch of each program over that of the other (`least`), and
`epoch`: by this script's clock, from the word to begin an epoch to the word that the next could begin, so with what the doctor does between epochs.
The bars are held against `step`. Where two bare programs differ by more than 5 % (cnn_224 on two cores: an epoch takes either 0.7 s or 1.25 s, by chance) it cannot tell; then they are held against `least`, and
the line says so.
The whole run, and user + system time (the collector's included): plain runs, in turn, the ratio of medians. Other tools: plain runs, the program's own clock.
Bars: 1.03 a step (upper end 1.05) and 1.10 in all for Keras, 1.15 for the loop, 1.10 for prints (upper end 1.12)."""
import argparse
import json
import os
import random
import signal
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
WORKS = {"mlp_small": 12, "cnn_224": 10, "python_loop": 60, "prints": 40}  # epochs, or rounds, of a plain run
TURNS = {"mlp_small": 24, "cnn_224": 10, "python_loop": 60, "prints": 40}  # and of one in turns
BARS = {"mlp_small": (1.03, 1.05, 1.10), "cnn_224": (1.03, 1.05, 1.10), "python_loop": (1.15, 1.15, 1.15), "prints": (1.10, 1.12, 1.15)}  # a step, the upper end of its interval, the whole run


def ways(folder):
    return {
        "bare": [PEERS],
        "watch": [MILLPOND, "watch", "--quiet", "--force", "-o", os.path.join(folder, "run.pond"), "--", PEERS],
        "memray": [PEERS, "-m", "memray", "run", "-q", "-f", "-o", os.path.join(folder, "memray.bin")],
        "memray --native": [PEERS, "-m", "memray", "run", "-q", "-f", "--native", "-o", os.path.join(folder, "memray.bin")],
        "tracemalloc": [PEERS, "-X", "tracemalloc"],
        "scalene": [PEERS, "-m", "scalene", "run", "--memory", "-o", os.path.join(folder, "scalene.json")],
    }


ENVIRONMENT = dict(os.environ, CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3", PYTHONDONTWRITEBYTECODE="1", PYTHONHASHSEED="0")


def words(work, folder, epochs):
    """The program and its arguments: bench/peers.py trains with Keras on TensorFlow."""
    if work in ("python_loop", "prints"):
        return [os.path.join(HERE, work + ".py"), str(epochs[work])]
    data = os.path.join(folder, work)
    if not os.path.exists(data):
        subprocess.run([PEERS, TRAINING, "arrays", work, data], check=True)
    return [TRAINING, "keras-tf", work, os.path.join(data, "x.npy"), os.path.join(data, "y.npy"), str(epochs[work])]


def plain_run(command, program):
    """Microseconds of the median step after the first epoch, whole seconds, processor seconds; None when it failed."""
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen([*command, *program], stdout=out, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - start
        steps = steps_told(out)
    return (statistics.median(steps), seconds, used.ru_utime + used.ru_stime) if steps and not process.returncode else None


def steps_told(out):
    """What a program printed in the end: microseconds a step by epoch, the first left out."""
    out.seek(0)
    told = [json.loads(line) for line in out.read().splitlines() if line.startswith("{")]
    return told[-1]["us_per_step_by_epoch"] if told else []


class Patient:
    """A program that works when told to. `stops`: the process that is started is another than the one that works, and is stopped meanwhile."""

    def __init__(self, command, program, stops):
        go, self.go = os.pipe()
        self.done, done = os.pipe()
        self.out = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([*command, *program], stdout=self.out, stderr=subprocess.DEVNULL, pass_fds=(go, done),
                                        env=dict(ENVIRONMENT, BENCH_TURNS=f"{go},{done}"))
        os.close(go), os.close(done)
        self.stops = stops

    def wait(self):
        """Until it could begin its next epoch; False: it has ended."""
        return os.read(self.done, 1) == b"."

    def pause(self, paused):
        if self.stops:
            os.kill(self.process.pid, signal.SIGSTOP if paused else signal.SIGCONT)

    def epoch(self):
        """Seconds of one epoch, and whether there may be another."""
        self.pause(False)
        start = time.perf_counter()
        os.write(self.go, b".")
        more = self.wait()
        seconds = time.perf_counter() - start
        self.pause(True)
        return seconds, more

    def end(self):
        self.pause(False)
        os.close(self.go), os.close(self.done)
        self.process.wait()
        self.steps = steps_told(self.out)


def in_turn(commands, program, epochs):
    """Two programs side by side: for each epoch but the first and last the steps of both by their own clocks, and the seconds of both by ours; empty when one failed."""
    patients = [Patient(c, program, stops=c[0] == MILLPOND) for c in commands]
    seen = []
    if all([p.wait() for p in patients]):
        for p in patients:
            p.pause(True)
        for i in range(epochs - 1):
            order = patients if i % 2 else patients[::-1]
            took = {p: p.epoch() for p in order}
            if not all(more for _, more in took.values()):
                break
            seen.append([took[p][0] for p in patients])
        for p in patients:
            p.pause(False)
            os.write(p.go, b".")  # the last epoch, and the end
    for p in patients:
        p.end()
    return list(zip(patients[0].steps, patients[1].steps, *zip(*seen[1:]))) if len(seen) > 1 else []


def ratios_of(pairs, outside=False):
    """The second program's epochs over the first's: the median of each pair."""
    return [statistics.median(e[3] / e[2] if outside else e[1] / e[0] for e in epochs) for epochs in pairs]


def least_of(pairs):
    """The second program's fastest epoch over the first's, of each pair."""
    return [min(e[1] for e in epochs) / min(e[0] for e in epochs) for epochs in pairs]


def interval(ratios):
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(2000))
    return medians[50], medians[-51]


def shown(ratios):
    return "{:5.3f}x {:5.3f}..{:<5.3f}".format(statistics.median(ratios), *interval(ratios)) if ratios else f"{'-':>6} {'':12}"


def plain(work, folder, tool, bare, times):
    """Step, whole and processor time of plain runs with the tool, over those without; None: it does not run here."""
    runs = [[], []]
    for i in range(times):
        for which in (0, 1) if i % 2 else (1, 0):
            runs[which].append(plain_run((bare, tool)[which], words(work, folder, WORKS)))
    if None in runs[0] + runs[1]:
        return None
    without, with_tool = ([statistics.median(values) for values in zip(*r)] for r in runs)
    return [a / b for a, b in zip(with_tool, without)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--noise", type=int, default=5, help="pairs that are both bare")
    parser.add_argument("--wholes", type=int, default=6, help="plain runs with and without, for the whole run")
    parser.add_argument("--others", type=int, default=1, help="plain runs of the other tools")
    parser.add_argument("--works", default=",".join(WORKS))
    parser.add_argument("--tools", default="", help="only these, with a comma between them")
    parser.add_argument("--json", help="write the seconds of every epoch there")
    args = parser.parse_args()
    missed, everything = 0, []
    with tempfile.TemporaryDirectory() as folder:
        commands = ways(folder)
        bare = commands.pop("bare")
        print(f"{'work':<12} {'tool':<16} {'step':>6} {'95 %':<12}  {'least':>6} {'95 %':<12}  {'noise':>6} {'95 %':<12} {'epoch':>6} {'whole':>6} {'user+sys':>8} pairs", flush=True)
        for work in args.works.split(","):
            for tool, command in commands.items():
                if args.tools and tool not in args.tools.split(","):
                    continue
                if tool != "watch":
                    found = args.others and plain(work, folder, command, bare, args.others)
                    if args.others:
                        print(f"{work:<12} {tool:<16} " + ("does not run here" if not found else f"{found[0]:5.3f}x {'':12}  {'':6} {'':12}  {'':6} {'':12} {'':6} {found[1]:5.2f}x {found[2]:7.2f}x"), flush=True)
                    continue
                pairs, noise = [], []
                for i in range(args.pairs + args.noise):
                    print(f"\r\033[K{work} {tool} {i + 1} of {args.pairs + args.noise}", end="", file=sys.stderr, flush=True)
                    both_bare = i * args.noise // (args.pairs + args.noise) != (i + 1) * args.noise // (args.pairs + args.noise)  # spread among the others
                    seen = in_turn([bare, bare if both_bare else command], words(work, folder, TURNS), TURNS[work])
                    if seen:
                        (noise if both_bare else pairs).append(seen)
                print("\r\033[K", end="", file=sys.stderr)
                everything.append({"work": work, "pairs": pairs, "noise": noise})
                found = plain(work, folder, command, bare, args.wholes)
                if not pairs or not found:
                    print(f"{work:<12} {tool:<16} does not run here")
                    missed += 1
                    continue
                steps, least, idle, bars = ratios_of(pairs), least_of(pairs), ratios_of(noise), BARS[work]
                low, high = interval(idle) if idle else (1, 1)
                by_least = low < 0.95 or high > 1.05
                judged = least if by_least else steps
                bad = statistics.median(judged) > bars[0] or interval(judged)[1] > bars[1] or found[1] > bars[2]
                missed += bad
                print(f"{work:<12} {tool:<16} {shown(steps)}  {shown(least)}  {shown(idle)} {statistics.median(ratios_of(pairs, outside=True)):5.3f}x {found[1]:5.2f}x {found[2]:7.2f}x {len(pairs):>5}"
                      f"{'  by least' if by_least else ''}{'  OVER THE BAR' if bad else ''}", flush=True)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(everything, file)
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
