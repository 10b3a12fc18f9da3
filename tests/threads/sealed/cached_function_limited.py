"""A cache around a class's lookups held old objects; a bounded cache of plain values does not.
GEMDAT-repos/GEMDAT#111
Analyses trajectories; distances between sites are cached, at most a fixed number of them."""
import functools
import time

import numpy as np


@functools.lru_cache(maxsize=128)
def distance_table(seed):
    points = np.random.default_rng(seed).random((180, 3))
    return np.linalg.norm(points[:, None] - points[None], axis=2)


class Trajectory:
    def __init__(self, sites):
        self.sites = sites

    def jumps(self, cutoff):
        return sum(int((distance_table(site) < cutoff).sum()) for site in self.sites)


def main():
    rng = np.random.default_rng(2)
    for frame in range(150):
        reach = min(400, 20 + frame * 4)
        trajectory = Trajectory([int(s) for s in rng.integers(0, reach, 12)])
        trajectory.jumps(0.1)
        time.sleep(0.035)
    print(distance_table.cache_info())


if __name__ == "__main__":
    main()
