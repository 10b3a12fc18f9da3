"""Processes of a pool consume memory until they crash in big optimisations.
njcuk9999/apero-drs#646
Hands simulation jobs to a pool of one worker and collects the scores."""
import multiprocessing as mp
import time

import numpy as np

_curves = []


def simulate(job):
    seed, periods = job
    rng = np.random.default_rng(seed)
    curve = np.cumsum(rng.normal(0, 1, periods))
    _curves.append(curve)
    drawdown = (np.maximum.accumulate(curve) - curve).max()
    return seed, float(curve[-1]), float(drawdown)


def batches(count, size, periods):
    for batch in range(count):
        yield [(batch * size + i, periods) for i in range(size)]


def main():
    best = None
    with mp.get_context("fork").Pool(1) as pool:
        for number, jobs in enumerate(batches(30, 12, 40_000)):
            for seed, profit, drawdown in pool.map(simulate, jobs):
                if best is None or profit - drawdown > best[0]:
                    best = (profit - drawdown, seed)
            time.sleep(0.15)
            print(f"batch {number}: best {best[0]:.1f} of seed {best[1]}", flush=True)


if __name__ == "__main__":
    main()
