"""A worker process of joblib leaks, and it cannot be replaced after some tasks.
joblib/joblib#1213
Computes features of stocks in parallel with one worker process that lives as long as the run."""
import time

import numpy as np
from joblib import Parallel, delayed

computed = {}


def features(stock, day):
    prices = np.cumsum(np.random.default_rng(stock * 1000 + day).normal(size=30_000)) + 100
    returns = np.diff(np.log(np.abs(prices) + 1))
    computed[stock, day] = returns
    return float(returns.std()), float(prices.max())


def main():
    best = 0.0
    with Parallel(n_jobs=2, backend="multiprocessing", pre_dispatch="all", batch_size=1) as parallel:
        for day in range(30):
            results = parallel(delayed(features)(stock, day) for stock in range(16))
            best = max(best, max(top for _, top in results))
            print(f"day {day}: {best:.2f}", flush=True)
            time.sleep(0.15)


if __name__ == "__main__":
    main()
