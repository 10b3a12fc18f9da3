"""Workers of a pool keep what they have worked on; `calm`: they only read what they had of their parent, and work with memory that they give back."""
import multiprocessing
import sys
import time

import known

results = []
table = []


def keep(task):
    results.append(bytearray(b"x" * 300_000))  # keeps
    time.sleep(0.03)
    known.kept(300_000 * len(results), call=len(results), task=len(results))
    return task


def read(task):
    words = [str(number) for number in range(20_000)]
    time.sleep(0.03)
    return len(words) + sum(len(row) for row in table[task * 1000:(task + 1) * 1000])


if __name__ == "__main__":
    method, work = sys.argv[1], read if sys.argv[2:] == ["calm"] else keep
    table.extend("row %d of the table" % number for number in range(200_000))
    with multiprocessing.get_context(method).Pool(2) as pool:
        for epoch in range(14):
            pool.map(work, range(12), chunksize=1)
            print("epoch", epoch, flush=True)
