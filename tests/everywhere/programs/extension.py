"""A module in C loses a block at every call."""
import time

import known
import native_records

for epoch in range(60):
    native_records.record(400_000)  # keeps
    known.kept(400_000 * (epoch + 1), call=epoch + 1, epoch=epoch + 1)
    time.sleep(0.08)
    print("epoch", epoch, flush=True)
