"""Unbounded labels were taken out of the metrics; only names that are known beforehand are left.
chrisguidry/docket#164
A task worker counts finished tasks by name and writes its metrics out from time to time."""
import random
import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest


class Metrics:
    def __init__(self):
        self.registry = CollectorRegistry()
        self.done = Counter("tasks_done", "finished tasks", ["task", "worker"], registry=self.registry)
        self.retried = Counter("tasks_retried", "retried tasks", ["task", "worker"], registry=self.registry)
        self.running = Gauge("tasks_running", "running tasks", registry=self.registry)
        self.duration = Histogram("task_seconds", "duration", ["task"], registry=self.registry)

    def text(self):
        return generate_latest(self.registry).decode()


def run(task, metrics, rng):
    with metrics.running.track_inprogress():
        payload = [rng.random() for _ in range(4000)]
        payload.sort()
    if rng.random() < 0.1:
        metrics.retried.labels(task, "w1").inc()
    metrics.duration.labels(task).observe(payload[-1])
    metrics.done.labels(task, "w1").inc()


def main():
    rng, metrics = random.Random(1), Metrics()
    tasks = [f"task_{letter}" for letter in "abcdefgh"]
    for tick in range(60):
        for _ in range(40):
            run(rng.choice(tasks), metrics, rng)
        print(f"tick {tick}: {len(metrics.text())} bytes of metrics", flush=True)
        time.sleep(0.07)


main()
