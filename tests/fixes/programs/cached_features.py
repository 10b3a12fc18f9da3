import time
from functools import lru_cache


@lru_cache(maxsize=None)
def features(row):
    return b"f" * (250_000 + row % 3)


def main():
    row = 0
    for epoch in range(30):
        size = 0
        for _ in range(6):
            size += len(features(row)) + len(features(row))
            row += 1
            time.sleep(0.003)
        print(f"epoch {epoch}: size {size}", flush=True)


if __name__ == "__main__":
    main()
