"""Failed tasks keep their exception, the exception its traceback, and the traceback all local variables.
celery/celery#6024
A task queue runs jobs of which some fail and keeps the failures for a report at the end."""
import random
import time


class Queue:
    def __init__(self):
        self.failures = []
        self.done = 0

    def run(self, job, *arguments):
        try:
            job(*arguments)
            self.done += 1
        except ValueError as error:
            self.failures.append((job.__name__, error))

    def report(self):
        return f"{self.done} done, {len(self.failures)} failed"


def parse(rows):
    table = [[float(n * k) for k in range(30)] for n in range(rows)]
    worst = max(sum(row) for row in table)
    if random.random() < 0.5:
        raise ValueError(f"implausible maximum {worst}")
    return worst


def main():
    random.seed(6)
    queue = Queue()
    for hour in range(50):
        for _ in range(10):
            queue.run(parse, 400)
        time.sleep(0.09)
        print(f"hour {hour}: {queue.report()}", flush=True)


main()
