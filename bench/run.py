#!/usr/bin/env python3
"""Time and memory of Millpond beside Keras on TensorFlow, Keras on JAX and plain JAX: the same arrays, in turn, each run in a
process of its own. `make bench` calls it; the table goes to the terminal, everything to build/bench.json.

  run.py [--quick] [--rounds N] [--works tiny,cnn_224,...] [--only-millpond] [--build FOLDER]
  run.py --markdown                       the table of the last run again, as README has it

Compared is least with least; medians stand beside. Before anything is timed, the losses are checked: ours must fall, and
that of the first epoch must be near the one of Keras."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

from works import DEFAULT, WORKS

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
PEERS = os.path.join(os.environ.get("MILLPOND_PEERS", os.path.join(ROOT, ".venv-peers")), "bin", "python")
MIB = 1 << 20


def fail(text):
    sys.exit(f"bench: {text}")


def start(command, **environment):
    env = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", BENCH_STARTED=repr(time.monotonic()), **environment)
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=HERE)
    if done.returncode:
        fail(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout[done.stdout.index("{"):] if done.stdout.strip() else "{}")


def contenders(args, work):
    threads = sorted({1, os.cpu_count() and len(os.sched_getaffinity(0))})
    ours = [(f"millpond {t}", t) for t in threads]
    return ours, [] if args.only_millpond else list(work.peers)


def run_one(args, work, who, x, y):
    if who.startswith("millpond"):
        return start([os.path.join(args.build, "bin", "millpond"), "train", work.name, "--data", x, y, "--epochs", str(work.epochs),
                      "--batch", str(work.batch), "--threads", who.split()[1], "--json", "-"])
    return start([PEERS, os.path.join(HERE, "peers.py"), who, work.name, x, y, str(work.epochs)])


def check(work, results):
    """Returns what is wrong with the losses, in words."""
    wrong = []
    for who, runs in results.items():
        if not who.startswith("millpond"):
            continue
        loss = runs[0]["loss_per_epoch"]
        if not all(isinstance(v, (int, float)) for v in loss):
            wrong.append(f"{who}: a loss is not a number: {loss}")
            continue
        if not min(loss[1:]) < loss[0]:
            wrong.append(f"{who}: the loss does not fall: {', '.join(f'{v:.4f}' for v in loss)}")
        # On TensorFlow, because on JAX Keras clips the probabilities, which hides large losses.
        keras = [r["loss_per_epoch"][0] for r in results.get("keras-tf", [])]
        if keras:
            # The first weights differ. Where a few large steps make most of the first epoch's loss, it varies by more.
            slack = 3.0 if len(work.shape) == 3 else 1.1
            if not min(keras) / slack <= loss[0] <= max(keras) * slack:
                wrong.append(f"{who}: first epoch's loss {loss[0]:.4f}, with Keras {keras[0]:.4f}")
    return wrong


def hopeless(work, results, who):
    """A peer five times slower than the fastest one, that no bar names: two rounds of it are enough."""
    if who.startswith("millpond") or any(against == who for _, against in work.bars):
        return False
    return least(results[who], "us_per_step_min") > 5 * min(least(runs, "us_per_step_min") for peer, runs in results.items() if not peer.startswith("millpond"))


def least(runs, key):
    return min(r[key] for r in runs)


def summary(runs):
    return {"us_per_step_min": least(runs, "us_per_step_min"),
            "us_per_step_median": statistics.median(r["us_per_step"] for r in runs),
            "first_epoch_s_min": least(runs, "first_epoch_s"),
            "first_epoch_s_median": statistics.median(r["first_epoch_s"] for r in runs),
            "rss_peak_min": least(runs, "rss_peak"),
            "rss_peak_max": max(r["rss_peak"] for r in runs),
            "loss_first_epoch": runs[0]["loss_per_epoch"][0], "loss_last_epoch": runs[0]["loss_per_epoch"][-1],
            "rounds": len(runs)}


def bars_of(work, table):
    """Each bar with the ratio that was reached: least with least for times; for memory our most with their least."""
    ours = {who: s for who, s in table.items() if who.startswith("millpond")}
    peers = {who: s for who, s in table.items() if not who.startswith("millpond")}
    rows = []
    for (what, against), bar in work.bars.items():
        if not peers:
            continue
        if what == "memory":
            best = max(ours.items(), key=lambda item: item[1]["rss_peak_max"])
            key, mine = "rss_peak_min", best[1]["rss_peak_max"]
        elif what == "start":
            key = "first_epoch_s_min"
            best = min(ours.items(), key=lambda item: item[1][key])
            mine = best[1][key]
        else:
            key = "us_per_step_min"
            best = min(ours.items(), key=lambda item: item[1][key])
            mine = best[1][key]
        if against == "best":
            peer = min(peers, key=lambda p: peers[p][key])
        elif against in peers:
            peer = against
        else:
            continue
        row = {"quantity": what, "ours": best[0], "against": peer, "ratio": peers[peer][key] / mine, "bar": bar}
        if what == "step":
            row["ratio_of_medians"] = peers[peer]["us_per_step_median"] / best[1]["us_per_step_median"]
        rows.append(dict(row, reached=row["ratio"] >= bar))
    return rows


def show(work, table, bars, peak):
    print(f"\n{work.name}  batch {work.batch}, {work.steps} steps an epoch, {work.flops_per_step / 1e6:,.4g} MFLOP a step")
    print(f"  {'':<12} {'us/step least':>14} {'median':>12} {'GFLOP/s':>9} {'of peak':>8} {'peak MiB':>9} {'first epoch s':>14} {'loss':>16}")
    for who, s in table.items():
        gflops = work.flops_per_step / s["us_per_step_min"] / 1e3
        threads = who.split()[1] if who.startswith("millpond") else max(peak["gemm_gflops"], key=int)
        share = f"{100 * gflops / peak['gemm_gflops'][threads]:.0f} %" if threads in peak["gemm_gflops"] else ""
        print(f"  {who:<12} {s['us_per_step_min']:>14,.4g} {s['us_per_step_median']:>12,.4g} {gflops:>9.4g} {share:>8} "
              f"{s['rss_peak_max'] / MIB:>9.1f} {s['first_epoch_s_min']:>14.4g} {s['loss_first_epoch']:>8.4f} {s['loss_last_epoch']:.4f}")
    for b in bars:
        beside = f" (medians {b['ratio_of_medians']:.4g}x)" if "ratio_of_medians" in b else ""
        word = {"step": "faster a step than", "memory": "less memory than", "start": "sooner through the first epoch than"}[b["quantity"]]
        print(f"  {'reached' if b['reached'] else 'MISSED ':<8} {b['ratio']:>8.4g}x {word} {b['against']}, bar {b['bar']}x, with {b['ours']} threads{beside}")
    sys.stdout.flush()


def plans(args):
    """Planning alone: every built-in must be planned without a gap in under 0.2 s."""
    rows = {}
    for name in ("tiny", "mlp_small", "mlp_large", "mlp_784", "cnn_224", "resnet50", "gpt2"):
        seen = [start([os.path.join(args.build, "bin", "millpond"), "plan", name, "--no-passes", "--json", "-"]) for _ in range(3)]
        rows[name] = {"planned_bytes": seen[0]["planned_bytes"], "without_passes_bytes": seen[0]["without_passes"]["planned_bytes"], "gap": seen[0]["gap"],
                      "plan_seconds_min": min(s["plan_seconds"] for s in seen)}
    print(f"\n{'plan':<10} {'MiB':>9} {'passes off':>11} {'gap':>8} {'ms':>8}")
    for name, r in rows.items():
        good = r["gap"] == 0 and r["plan_seconds_min"] < 0.2
        print(f"{name:<10} {r['planned_bytes'] / MIB:>9.4g} {r['without_passes_bytes'] / MIB:>11.4g} {100 * r['gap']:>6.2f} % {1e3 * r['plan_seconds_min']:>8.1f}{'' if good else '  MISSED: no gap, under 200 ms'}")
    return rows


def markdown(report):
    """Least microseconds of a step, peak MiB and seconds through the first epoch, and the ratios that have a bar."""
    everyone = ["millpond 1", f"millpond {report['cores']}", "keras-tf", "keras-jax", "jax"]
    names = {"keras-tf": "Keras on TensorFlow", "keras-jax": "Keras on JAX", "jax": "plain JAX"}
    lines = ["| us a step, peak MiB | " + " | ".join(names.get(who, f"Millpond, {who.split()[-1]} thread{'' if who.endswith(' 1') else 's'}") for who in everyone) + " | against the bars |",
             "|---" * (len(everyone) + 2) + "|"]
    for name, work in report["works"].items():
        cells = []
        for who in everyone:
            s = work["summary"].get(who)
            cells.append(f"{s['us_per_step_min']:,.{0 if s['us_per_step_min'] >= 100 else 1 if s['us_per_step_min'] >= 10 else 2}f}, {s['rss_peak_max'] / MIB:,.0f}" if s else "")
        word = {"step": "faster than", "memory": "less memory than", "start": "sooner than"}
        bars = "; ".join(f"{b['ratio']:,.{0 if b['ratio'] >= 10 else 1}f}x {word[b['quantity']]} {names[b['against']]} (bar {b['bar']}x)" for b in work["bars"])
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {bars} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="2 rounds")
    parser.add_argument("--rounds", type=int, help="how often all take their turn (default 7)")
    parser.add_argument("--works", default=",".join(DEFAULT), help=f"of {', '.join(WORKS)} (default {','.join(DEFAULT)})")
    parser.add_argument("--only-millpond", action="store_true", help="without the peers")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), help="build folder")
    parser.add_argument("--markdown", action="store_true", help="print the table of the last run and end")
    parser.add_argument("--json", help="default: bench.json in the build folder")
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    if args.markdown:
        with open(args.json or os.path.join(args.build, "bench.json")) as file:
            return print(markdown(json.load(file)))
    rounds = args.rounds or (2 if args.quick else 7)
    names = [name for name in args.works.split(",") if name]
    for name in names:
        if name not in WORKS:
            fail(f"no work is called {name}; there are {', '.join(WORKS)}")
    if not os.path.exists(PEERS):
        fail("the peers are not here; `make peers` installs them")
    if not os.path.exists(os.path.join(args.build, "bin", "millpond")):
        fail(f"no program in {args.build}; `make build` makes it")

    print("bench: what this machine can do", end="", flush=True)
    peak = start([os.path.join(args.build, "bench", "peak")])
    print(": " + ", ".join(f"{v:g} GFLOP/s and {peak['copy_gbs'][t]:g} GB/s on {t} thread{'s' if t != '1' else ''}" for t, v in peak["gemm_gflops"].items()))
    report = {"peak": peak, "rounds": rounds, "cores": len(os.sched_getaffinity(0)), "works": {}}
    target = args.json or os.path.join(args.build, "bench.json")
    report["plans"] = plans(args)
    failures = []
    for name in names:
        work = WORKS[name]
        folder = os.path.join(args.build, "bench", "arrays", name)
        x, y = os.path.join(folder, "x.npy"), os.path.join(folder, "y.npy")
        if not (os.path.exists(x) and os.path.exists(y)):
            start([PEERS, os.path.join(HERE, "peers.py"), "arrays", name, folder])
        ours, peers = contenders(args, work)
        everyone = [who for who, _ in ours] + peers
        results = {who: [] for who in everyone}
        for i in range(rounds):
            for who in everyone[i % len(everyone):] + everyone[:i % len(everyone)]:  # nobody is always first
                if i >= 2 and hopeless(work, results, who):
                    continue
                print(f"\r\033[Kbench: {name}, round {i + 1} of {rounds}: {who}", end="", file=sys.stderr, flush=True)
                results[who].append(run_one(args, work, who, x, y))
            if i == 0:
                wrong = check(work, results)
                failures += wrong
                for text in wrong:
                    print(f"\r\033[Kbench: {name}: WRONG RESULT, {text}", flush=True)
        print("\r\033[K", end="", file=sys.stderr, flush=True)
        table = {who: summary(runs) for who, runs in results.items()}
        bars = bars_of(work, table)
        show(work, table, bars, peak)
        report["works"][name] = {"flops_per_step": work.flops_per_step, "summary": table, "bars": bars, "runs": results}
        with open(target, "w") as out:
            json.dump(report, out, indent=1)
    missed = [f"{name} {b['quantity']} against {b['against']}" for name, w in report["works"].items() for b in w["bars"] if not b["reached"]]
    print(f"\nbench: {target}; " + ("every bar is reached" if not missed else "missed: " + ", ".join(missed)))
    if failures:
        fail("results are wrong, so the times mean nothing")


main()
