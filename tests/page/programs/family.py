"""A program with two children that hold memory, and a thread that takes some and gives it back at once: for the views by process, thread and lifetime."""
import os
import threading
import time


def hold(megabytes):
    block = bytearray(megabytes << 20)
    for i in range(0, len(block), 4096):
        block[i] = 1
    return block


def child(megabytes):
    kept = []
    for _ in range(8):
        kept.append(hold(megabytes))
        time.sleep(0.25)
    os._exit(0)


def churn(stop):
    while not stop.is_set():
        for _ in range(20):
            bytearray(3 << 20)
        time.sleep(0.01)


def main():
    pids = []
    for megabytes in (4, 6):
        pid = os.fork()
        if pid == 0:
            child(megabytes)
        pids.append(pid)
    stop = threading.Event()
    thread = threading.Thread(target=churn, args=(stop,))
    thread.start()
    kept = []
    for epoch in range(12):
        kept.append(hold(3))
        time.sleep(0.22)
        print("epoch", epoch, flush=True)
    stop.set()
    thread.join()
    for pid in pids:
        os.waitpid(pid, 0)


main()
