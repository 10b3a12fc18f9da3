"""After a large CSV file was read and dropped the process keeps much of the memory.
pandas-dev/pandas#21353
Reads one large file of text columns early on, then works on small files for the rest of the run."""
import io
import random
import time

import pandas as pd


def csv_text(rows, seed):
    rng = random.Random(seed)
    lines = ["title,city,price"]
    for n in range(rows):
        lines.append(f"item {rng.random():.9f} number {n},town-{rng.random():.7f},{rng.randint(1, 999)}")
    return "\n".join(lines)


def cheapest(text):
    df = pd.read_csv(io.StringIO(text))
    titles = {title: len(title) for title in df["title"].head(200)}
    return df.sort_values("price")["title"].iloc[0], titles


def main():
    kept = {}
    for day in range(80):
        rows = 160_000 if day == 6 else 1500
        name, titles = cheapest(csv_text(rows, day))
        kept[day % 10] = titles
        time.sleep(0.05)
    print(name, len(kept))


if __name__ == "__main__":
    main()
