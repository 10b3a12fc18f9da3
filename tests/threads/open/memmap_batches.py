"""Reading batches from a memory-mapped token file makes the resident size climb to the size of the file.
karpathy/nanoGPT#428
Trains a bigram table on random windows of a memory-mapped file of tokens."""
import os
import tempfile
import time

import numpy as np

BLOCK, BATCH, TOKENS = 512, 8, 60_000_000


def prepare(path):
    rng = np.random.default_rng(0)
    with open(path, "wb") as f:
        for _ in range(10):
            f.write(rng.integers(0, 512, TOKENS // 10, dtype=np.uint16).tobytes())


class Loader:
    def __init__(self, path):
        self.data = np.memmap(path, dtype=np.uint16, mode="r")
        self.rng = np.random.default_rng(1)

    def batch(self):
        starts = self.rng.integers(0, len(self.data) - BLOCK - 1, BATCH)
        x = np.stack([self.data[s:s + BLOCK].astype(np.int64) for s in starts])
        y = np.stack([self.data[s + 1:s + 1 + BLOCK].astype(np.int64) for s in starts])
        return x, y


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "train.bin")
        prepare(path)
        loader, counts = Loader(path), np.ones((512, 512))
        for iteration in range(1500):
            x, y = loader.batch()
            np.add.at(counts, (x.ravel(), y.ravel()), 1)
            time.sleep(0.003)
            if iteration % 50 == 49:
                loss = -np.log(counts[x, y] / counts[x].sum(-1)).mean()
                print(f"iter {iteration + 1}: loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
