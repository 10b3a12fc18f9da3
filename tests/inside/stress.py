"""Enters and leaves this process again and again while its threads allocate and free: stress.py LIBRARY TIMES. Blocks that were sampled inside are freed after leaving,
and the other way round; each is checked to hold what was written into it."""
import os
import shutil
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.environ["MILLPOND_SOURCE_DIR"], "python", "millpond", "inject"))
import millpond_agent.inside as inside  # noqa: E402

library, times = sys.argv[1], int(sys.argv[2])
os.environ["MILLPOND_INTERVAL"] = "4096"  # a sample every few blocks
stop = False
wrong = []


def work(seed):
    kept = {}
    n = seed
    while not stop:
        n += 1
        size = (n * 7919) % 3000 + 1
        kept[n % 997] = (size, bytes([n % 251]) * size, [n] * (size % 60), {n: str(n)}, bytearray(size * (40 if n % 50 == 0 else 1)))
        old = kept.get((n * 31) % 997)
        if old is not None and (len(old[1]) != old[0] or old[1][:1] * old[0] != old[1]):
            wrong.append(old)
        if n % 13 == 0 and kept:
            kept.pop(next(iter(kept)))


threads = [threading.Thread(target=work, args=(i * 1000003,)) for i in range(4)]
for thread in threads:
    thread.start()
samples = 0
for i in range(times):
    folder = tempfile.mkdtemp(prefix="millpond-", dir="/dev/shm")
    try:
        inside.enter(folder, library, probes=False, follow=i % 2 == 0)
        if i % 20 == 0:
            child = os.fork()
            if child == 0:
                kept = [bytearray(5000) for _ in range(200)]
                os._exit(0 if i % 40 or not inside.leave() else 1)
            samples += os.waitpid(child, 0)[1] and 1000000
        left = inside.leave()
        if left:
            wrong.append(left)
    finally:
        shutil.rmtree(folder)
stop = True
for thread in threads:
    thread.join()
print("done", times, "wrong", len(wrong), wrong[:1], "children that failed", samples)
sys.exit(1 if wrong or samples else 0)
