"""Reading files with pandas from several threads leaves more memory behind than from one.
pandas-dev/pandas#19941
A pool of threads parses files of different size; only one number of each file is kept."""
import io
import random
from concurrent.futures import ThreadPoolExecutor

import pandas as pd

rng = random.Random(77)


def text(rows):
    return "a,b,c\n" + "\n".join(f"{n},{n * 7 % 1000},word{n % 5000}" for n in range(rows))


TEXTS = [text(rows) for rows in (500, 4000, 20_000, 40_000)]


def parse(index):
    df = pd.read_csv(io.StringIO(TEXTS[index]))
    return int(df["b"].sum()) + df["c"].nunique()


def main(rounds=150):
    totals = []
    with ThreadPoolExecutor(max_workers=3) as pool:
        for turn in range(rounds):
            work = [rng.randrange(len(TEXTS)) for _ in range(5)]
            totals.append(sum(pool.map(parse, work)))
            print(f"turn {turn}: {totals[-1]}", flush=True)


if __name__ == "__main__":
    main()
