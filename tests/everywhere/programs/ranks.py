"""Four ranks of a distributed job, started anew (spawn); the one whose number is given keeps its batches."""
import multiprocessing
import sys
import time

import known


def train(rank, leaking):
    history = []
    for epoch in range(60):
        batch = bytearray(b"x" * 400_000)  # born
        if rank == leaking:
            history.append(batch)  # keeps
            known.kept(400_000 * len(history), call=len(history), epoch=len(history))
        time.sleep(0.08)
        print("epoch", epoch, "of rank", rank, flush=True)


if __name__ == "__main__":
    ranks = [multiprocessing.get_context("spawn").Process(target=train, args=(rank, int(sys.argv[1])), name="rank-%d" % rank) for rank in range(4)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
