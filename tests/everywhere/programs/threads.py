"""A thread keeps what the main thread hands to it."""
import queue
import threading
import time

import known

tasks = queue.Queue(maxsize=4)


def consume():
    archive = []
    while True:
        block = tasks.get()
        if block is None:
            return
        archive.append(block)  # keeps
        known.kept(400_000 * len(archive), call=len(archive), epoch=len(archive))


consumer = threading.Thread(target=consume)
consumer.start()
for epoch in range(60):
    tasks.put(bytearray(b"x" * 400_000))  # born
    time.sleep(0.08)
    print("epoch", epoch, flush=True)
tasks.put(None)
consumer.join()
