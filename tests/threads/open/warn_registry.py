"""Warnings whose text differs each time are all remembered by the warnings module.
python/cpython#97557
A converter warns about each odd value that it meets, with the value in the message."""
import random
import time
import warnings

shown = 0


def count_only(message, category, filename, lineno, file=None, line=None):
    global shown
    shown += 1


warnings.showwarning = count_only
warnings.simplefilter("default")


def convert(row):
    value = row["value"]
    if value < 0:
        warnings.warn(f"negative reading {value!r} in row {row['id']}: {row['origin']}", RuntimeWarning)
        return 0.0
    return value ** 0.5


def main():
    rng = random.Random(4)
    for file in range(70):
        rows = [{"id": (file, n), "value": rng.uniform(-1, 1), "origin": rng.randbytes(500).hex()} for n in range(400)]
        total = sum(convert(row) for row in rows)
        time.sleep(0.09)
    print(round(total, 3), shown)


if __name__ == "__main__":
    main()
