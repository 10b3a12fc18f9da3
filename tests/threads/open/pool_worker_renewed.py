"""Workers of a pool grow; giving each a limited number of tasks keeps memory in bounds.
mementum/backtrader#417
Runs strategy back-tests in a pool whose worker is replaced after a few tasks."""
import time
from multiprocessing import get_context

import numpy as np

seen = []


def backtest(parameters):
    fast, slow = parameters
    prices = np.cumsum(np.random.default_rng(fast * 1000 + slow).normal(size=60_000)) + 500
    seen.append(prices)
    averages = [np.convolve(prices, np.ones(n) / n, mode="valid")[-1000:] for n in (fast, slow)]
    return float(np.sign(averages[0] - averages[1]).mean())


def grid():
    return [(fast, slow) for fast in range(3, 15) for slow in range(20, 30)]


if __name__ == "__main__":
    results = {}
    with get_context("fork").Pool(processes=1, maxtasksperchild=15) as pool:
        for parameters, score in zip(grid(), pool.imap(backtest, grid(), chunksize=1)):
            results[parameters] = score
            time.sleep(0.06)
    print(max(results, key=results.get))
