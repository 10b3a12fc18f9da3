"""Shared memory of a data loader is created for each batch and not released.
Oneflow-Inc/oneflow#7564
Puts camera frames into shared memory blocks for other processes and keeps a table of the blocks."""
import time
from multiprocessing import shared_memory

import numpy as np


class Publisher:
    def __init__(self):
        self.blocks = {}

    def publish(self, number, frame):
        block = shared_memory.SharedMemory(create=True, size=frame.nbytes)
        view = np.ndarray(frame.shape, frame.dtype, buffer=block.buf)
        view[:] = frame
        self.blocks[number] = block
        return block.name

    def close(self):
        for block in self.blocks.values():
            block.close()
            block.unlink()


def main():
    rng = np.random.default_rng(9)
    publisher = Publisher()
    try:
        for number in range(60):
            frame = rng.integers(0, 255, (480, 640, 3), dtype=np.uint8)
            name = publisher.publish(number, frame)
            if number % 3 == 0:
                print(f"frame {number} in {len(name)} letters", flush=True)
            time.sleep(0.09)
    finally:
        publisher.close()


if __name__ == "__main__":
    main()
