"""Resident memory goes up and down and never quite back when frames are concatenated in a loop.
pandas-dev/pandas#44982
Joins windows of readings with pandas again and again; no result outlives its round."""
import time

import numpy as np
import pandas as pd

left = pd.DataFrame({"col": np.arange(300_000), "half": np.arange(300_000) / 2})
right = pd.DataFrame({"col": np.arange(260_000), "half": np.arange(260_000) / 3})


def joined():
    both = pd.concat([left, right], axis=0)
    both["bucket"] = both["col"] % 97
    return both.groupby("bucket")["half"].sum()


def main():
    for turn in range(60):
        result = joined()
        print(f"turn {turn} {result.iloc[0]:.1f}", flush=True)
        time.sleep(0.06)


if __name__ == "__main__":
    main()
