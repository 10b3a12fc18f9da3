"""Iterating over a data set on disk raises the resident memory until all of it was seen once.
huggingface/datasets#4883
Saves a data set to disk, maps it and goes over it in batches for several epochs."""
import os
import tempfile

import numpy as np
from datasets import Dataset, disable_progress_bar, load_from_disk

disable_progress_bar()


def build(folder, rows=60_000):
    rng = np.random.default_rng(1)
    data = Dataset.from_dict({"text": [rng.bytes(600).hex() for _ in range(rows)], "label": list(range(rows))})
    data.save_to_disk(folder)


def epoch(data, size=1000):
    letters = 0
    for start in range(0, len(data), size):
        batch = data[start:start + size]
        letters += sum(len(text) for text in batch["text"])
    return letters


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "corpus")
        build(path)
        data = load_from_disk(path)
        for number in range(36):
            print(f"epoch {number}: {epoch(data)} letters", flush=True)


if __name__ == "__main__":
    main()
