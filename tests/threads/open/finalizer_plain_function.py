"""Finalizers should not close over the object that they belong to.
bluesky/ophyd#865
Devices that own a buffer are made and dropped; a plain function cleans up after each."""
import time
import weakref

import numpy as np

released = 0


def release(name):
    global released
    released += 1


class Device:
    def __init__(self, name, size):
        self.name = name
        self.trace = np.empty(size)
        self._finalizer = weakref.finalize(self, release, name)

    def acquire(self, rng):
        self.trace[:] = rng.standard_normal(self.trace.size)
        return self.trace.std()


def main():
    rng = np.random.default_rng(30)
    for scan in range(90):
        devices = [Device(f"motor{n}", 60_000 + 500 * n) for n in range(4)]
        noise = [device.acquire(rng) for device in devices]
        if scan % 3 == 0:
            print(f"scan {scan}: {max(noise):.4f}, released {released}", flush=True)
        time.sleep(0.05)


if __name__ == "__main__":
    main()
