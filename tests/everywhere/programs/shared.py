"""Memory that is not the process's own alone, kept: segments of shared memory, anonymous shared mappings, mapped files, a file in shared memory that grows, with a name and without.
`calm`: as many segments, each given back."""
import mmap
import os
import sys
import tempfile
import time
from multiprocessing import shared_memory

import known

EACH = 500_000
what = sys.argv[1]
kept = []
path = "/dev/shm/everywhere-%d" % os.getpid()
try:
    for epoch in range(60):
        if what == "segments":
            kept.append(shared_memory.SharedMemory(create=True, size=EACH))  # keeps segments
            kept[-1].buf[:] = b"x" * EACH
        elif what == "anonymous":
            kept.append(mmap.mmap(-1, EACH))  # keeps anonymous
            kept[-1].write(b"x" * EACH)
        elif what == "files":
            with open("data-%d.bin" % epoch, "w+b") as file:
                file.write(b"x" * EACH)
                file.flush()
                kept.append(mmap.mmap(file.fileno(), 0))  # keeps files
            sum(kept[-1][::4096])
        elif what == "tmpfs":
            if not kept:
                kept.append(open(path, "ab", buffering=0))
            kept[0].write(b"x" * EACH)  # keeps tmpfs
        elif what == "nameless":
            if not kept:
                kept.append(tempfile.TemporaryFile(dir="/dev/shm", buffering=0))
            kept[0].write(b"x" * EACH)  # keeps nameless
        else:
            segment = shared_memory.SharedMemory(create=True, size=EACH)
            segment.buf[:] = b"x" * EACH
            segment.close()
            segment.unlink()
        known.kept(EACH * (epoch + 1), call=epoch + 1, epoch=epoch + 1)
        time.sleep(0.08)
        print("epoch", epoch, flush=True)
finally:
    for segment in kept:
        if what == "segments":
            segment.close()
            segment.unlink()
    if os.path.exists(path):
        os.unlink(path)
