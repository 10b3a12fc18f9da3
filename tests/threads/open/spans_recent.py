"""Finished spans now live in a ring of limited length.
open-telemetry/opentelemetry-python#5296
A job server records spans into a ring; it is filled after three quarters of the run."""
import os
import time
from collections import deque
from typing import NamedTuple


class Finished(NamedTuple):
    name: str
    duration: float
    body: bytes


class RingExporter:
    def __init__(self, max_spans=None):
        self._spans = deque(maxlen=max_spans)

    def export(self, spans):
        self._spans.extend(spans)

    def slowest(self):
        return max(self._spans, key=lambda span: span.duration)


def job(exporter, number):
    begin = time.perf_counter()
    body = os.urandom(30_000)
    checksum = sum(body[::50])
    exporter.export([Finished(f"job-{number}", time.perf_counter() - begin, body)])
    return checksum


def main(jobs=1200):
    exporter = RingExporter(max_spans=900)
    total = 0
    for number in range(jobs):
        total += job(exporter, number)
        time.sleep(0.005)
        if number % 40 == 39:
            print(f"job {number + 1} slowest {exporter.slowest().name}", flush=True)
    print(total)


if __name__ == "__main__":
    main()
