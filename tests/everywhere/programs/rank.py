"""A rank that a launcher starts: it keeps its batches if its number is the one that is given, or `all`. `silent`: it says nothing of its rounds."""
import os
import sys
import time

import known

rank, leaking, silent = os.environ.get("RANK", "0"), sys.argv[1], "silent" in sys.argv
history = []
for epoch in range(60):
    batch = bytearray(b"x" * 400_000)  # born
    if leaking in (rank, "all"):
        history.append(batch)  # keeps
        known.kept(400_000 * len(history), call=len(history), epoch=len(history))
    time.sleep(0.08)
    if not silent:
        print("epoch", epoch, "of rank", rank, flush=True)
