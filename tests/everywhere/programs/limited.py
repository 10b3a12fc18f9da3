"""A program that limits its own address space, and keeps what it makes."""
import resource
import time

import known

resource.setrlimit(resource.RLIMIT_AS, (1_500_000_000, resource.RLIM_INFINITY))
history = []
for epoch in range(60):
    history.append(bytearray(b"x" * 400_000))  # keeps
    known.kept(400_000 * len(history), call=len(history), epoch=len(history))
    time.sleep(0.08)
    print("epoch", epoch, flush=True)
