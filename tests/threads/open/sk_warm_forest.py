"""Memory climbs with each call of fit when an ensemble is continued with warm_start.
scikit-learn/scikit-learn#5385
Continues a random forest with new data each round by adding trees to it."""
import time

import numpy as np
from sklearn.ensemble import RandomForestRegressor


def stream(rounds, rows=4000):
    rng = np.random.default_rng(6)
    for _ in range(rounds):
        x = rng.random((rows, 8))
        yield x, np.sin(5 * x[:, 0]) + x[:, 1] * x[:, 2] + rng.normal(0, 0.1, rows)


def main():
    forest = RandomForestRegressor(n_estimators=0, warm_start=True, n_jobs=1, random_state=0, max_features=2)
    for number, (x, y) in enumerate(stream(45)):
        forest.n_estimators += 4
        forest.fit(x, y)
        error = np.abs(forest.estimators_[-1].predict(x[:200]) - y[:200]).mean()
        print(f"round {number}: {len(forest.estimators_)} trees, error {error:.3f}", flush=True)
        time.sleep(0.03)


if __name__ == "__main__":
    main()
