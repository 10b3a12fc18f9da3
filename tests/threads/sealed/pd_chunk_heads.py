"""Reading a large file in chunks takes far more memory than the rows that are kept.
pandas-dev/pandas#48499
Reads chunks of a table, keeps the first rows of each as a preview and sums up the rest."""
import time

import numpy as np
import pandas as pd

COLUMNS = [f"c{n}" for n in range(12)]


def chunks(count, rows=20_000):
    rng = np.random.default_rng(44)
    for _ in range(count):
        yield pd.DataFrame(rng.random((rows, len(COLUMNS))), columns=COLUMNS)


class Summary:
    def __init__(self):
        self.sums = np.zeros(len(COLUMNS))
        self.previews = []

    def add(self, chunk):
        self.sums += chunk.sum().to_numpy()
        chunk.groupby(chunk["c0"].round(2)).mean()
        chunk.sort_values("c1")["c2"].rolling(50).mean()
        self.previews.append(chunk.head(5))

    def text(self):
        return pd.concat(self.previews).describe().round(3).to_string()


def main():
    summary = Summary()
    for number, chunk in enumerate(chunks(120)):
        summary.add(chunk)
        time.sleep(0.03)
        if number % 6 == 5:
            print(f"chunk {number + 1}", flush=True)
    print(summary.text())


if __name__ == "__main__":
    main()
