"""Readers and writers of a pipeline are not collected, for their finalizer is a bound method of themselves.
DiamondLightSource/httomo#265
Sends blocks of projections through a pipeline whose stages write to stores."""
import time
import weakref

import numpy as np


class StoreWriter:
    def __init__(self, shape):
        self.data = np.zeros(shape, np.float32)
        self.filled = 0
        weakref.finalize(self, self.finalize)

    def write(self, block):
        count = len(block)
        self.data[self.filled:self.filled + count] = block
        self.filled += count

    def finalize(self):
        self.data = None


def stage(blocks, scale):
    writer = StoreWriter((180, 64, 64))
    for block in blocks:
        writer.write(np.tanh(block * scale))
    return [writer.data[i:i + 60] for i in range(0, 180, 60)]


def pipeline(scan):
    rng = np.random.default_rng(scan)
    blocks = [rng.random((60, 64, 64), dtype=np.float32) for _ in range(3)]
    for scale in (0.5, 2.0):
        blocks = stage(blocks, scale)
    return float(blocks[0].mean())


for scan in range(36):
    print("scan", scan, round(pipeline(scan), 5), flush=True)
    time.sleep(0.14)
