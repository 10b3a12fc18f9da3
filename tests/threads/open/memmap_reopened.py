"""A memory map keeps every page that was read; opening it anew for each batch keeps memory low.
numpy/numpy#28825
Goes through a large mapped file in pieces and opens the map for each piece."""
import os
import tempfile

import numpy as np

PIECES, LENGTH = 60, 500_000


def create(path):
    rng = np.random.default_rng(5)
    with open(path, "wb") as f:
        for _ in range(PIECES):
            rng.random(LENGTH, dtype=np.float32).tofile(f)


def piece(path, number):
    data = np.memmap(path, dtype=np.float32, mode="r")
    return np.sort(data[number * LENGTH:(number + 1) * LENGTH])[::1000].copy()


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "signal.f32")
        create(path)
        quantiles = np.zeros(LENGTH // 1000)
        for turn in range(3):
            for number in range(PIECES):
                quantiles += piece(path, number)
        print(quantiles[:3] / (3 * PIECES))


main()
