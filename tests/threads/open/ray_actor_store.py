"""The resident memory of an actor's process grows without bound.
ray-project/ray#19905
A Ray actor collects batches that the driver sends and answers with running statistics."""
import time

import numpy as np
import ray


@ray.remote(num_cpus=1)
class Collector:
    def __init__(self):
        self.batches = []

    def add(self, batch):
        self.batches.append(batch * 0.5)
        return len(self.batches)

    def mean(self):
        return float(self.batches[-1].mean())


def main():
    ray.init(num_cpus=1, include_dashboard=False, object_store_memory=120 * 1024 * 1024, log_to_driver=False, logging_level="ERROR")
    collector = Collector.remote()
    rng = np.random.default_rng(0)
    for batch in range(40):
        ray.get(collector.add.remote(rng.random((500, 500))))
        print(f"batch {batch}: {ray.get(collector.mean.remote()):.5f}", flush=True)
        time.sleep(0.15)
    ray.shutdown()


if __name__ == "__main__":
    main()
