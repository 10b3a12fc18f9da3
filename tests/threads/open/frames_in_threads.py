"""Frames are allocated and freed in many threads; resident memory stays at its highest level.
XiaoMi/xiaomi-miloco#459
Several camera threads decode frames of changing size and keep only the newest one each."""
import random
import threading
import time

import numpy as np


class Camera(threading.Thread):
    def __init__(self, number, frames):
        super().__init__()
        self.rng = random.Random(number)
        self.frames = frames
        self.latest = None
        self.seen = 0

    def decode(self):
        height = self.rng.choice((240, 360, 480))
        rows = [np.full((height, 8 * self.rng.randint(20, 60), 3), self.rng.randrange(256), np.uint8) for _ in range(6)]
        return min(rows, key=lambda row: row.shape[1]).copy()

    def run(self):
        for _ in range(self.frames):
            self.latest = self.decode()
            self.seen += 1
            time.sleep(0.02)


def main():
    cameras = [Camera(n, 300) for n in range(4)]
    for camera in cameras:
        camera.start()
    while any(camera.is_alive() for camera in cameras):
        time.sleep(0.25)
        print("tick", sum(camera.seen for camera in cameras), flush=True)


if __name__ == "__main__":
    main()
