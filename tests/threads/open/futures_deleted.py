"""Futures are deleted as they are processed, so that results do not pile up.
simonsobs/sotodlib#884
Processes observations in a small thread pool with a bounded number of futures in flight."""
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

import numpy as np


def process(observation):
    rng = np.random.default_rng(observation)
    samples = rng.standard_normal((200, 1500))
    trend = samples.mean(axis=0)
    return np.sort(samples - trend, axis=1)


def main(total=300, in_flight=6):
    waiting = list(range(total))
    power = 0.0
    with ThreadPoolExecutor(max_workers=2) as pool:
        running = set()
        while waiting or running:
            while waiting and len(running) < in_flight:
                running.add(pool.submit(process, waiting.pop()))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                power += float(np.square(future.result()).mean())
            del done, future
    print(power / total)


if __name__ == "__main__":
    main()
