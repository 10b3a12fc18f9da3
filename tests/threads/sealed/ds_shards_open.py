"""Sampling from one data set after another: memory of those sampled before is not released.
huggingface/datasets#7829
At each step a shard of a large collection is built, a batch is sampled from it and the shard is remembered by name."""
import time

import numpy as np
from datasets import Dataset


class Collection:
    def __init__(self, rows=9000):
        self.rows = rows
        self.open = {}

    def shard(self, name):
        if name not in self.open:
            rng = np.random.default_rng(abs(hash(name)) % 1000)
            self.open[name] = Dataset.from_dict({
                "query": rng.random((self.rows, 16)),
                "label": rng.integers(0, 5, self.rows),
            })
        return self.open[name]


def sample(shard, rng, size):
    rows = rng.integers(0, len(shard), size)
    return shard.select(rows)


def main():
    rng = np.random.default_rng(3)
    collection, total = Collection(), 0
    for step in range(60):
        batch = sample(collection.shard(f"corpus-{step:03d}"), rng, 200)
        total += sum(batch["label"])
        print(f"step {step}: {total}", flush=True)
        time.sleep(0.08)


if __name__ == "__main__":
    main()
