"""A program that holds much for a moment between two looks at it: the kernel counts that, and no sample met it."""
import mmap
import time

for epoch in range(12):
    time.sleep(0.15)
    if epoch == 6:
        with mmap.mmap(-1, 300 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE) as block:
            block[0] = 1
    print("epoch", epoch, flush=True)
