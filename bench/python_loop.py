"""A Python loop that does little but allocate: python_loop.py ROUNDS. Prints microseconds of each round after the first, as JSON."""
import json
import sys
import time

from turns import my_turn


def work(n):
    kept = []
    for i in range(n):
        row = {"id": i, "name": "row %d" % i, "values": [i, i + 1.5, (i, str(i))]}
        kept.append(row)
        if len(kept) > 500:
            kept = kept[250:]
    return len(kept)


times = []
for _ in range(int(sys.argv[1])):
    my_turn()
    start = time.perf_counter()
    work(20000)
    times.append((time.perf_counter() - start) * 1e6)
print(json.dumps({"us_per_step_by_epoch": times[1:]}))
