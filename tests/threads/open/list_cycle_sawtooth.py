"""Memory climbs until the collector runs and falls again; collecting every few steps keeps it low.
illinois-ceesd/mirgecom#839
A solver makes arrays that refer to their context and back; garbage collection runs every ten steps."""
import gc
import time

import numpy as np


class ArrayContext:
    def __init__(self):
        self.arrays = []

    def make(self, values):
        array = Tracked(self, values)
        self.arrays.append(array)
        return array


class Tracked:
    def __init__(self, context, values):
        self.context = context
        self.values = values

    def advance(self, dt):
        lap = np.roll(self.values, 1) + np.roll(self.values, -1) - 2 * self.values
        return self.context.make(self.values + dt * lap)


def step(values):
    context = ArrayContext()
    state = context.make(values)
    for _ in range(4):
        state = state.advance(0.1)
    return state.values


def main():
    gc.disable()
    values = np.random.default_rng(0).random(120_000)
    for number in range(240):
        values = step(values)
        time.sleep(0.02)
        if number % 10 == 9:
            gc.collect()
            print(f"step {number + 1} mean {values.mean():.6f}", flush=True)


if __name__ == "__main__":
    main()
