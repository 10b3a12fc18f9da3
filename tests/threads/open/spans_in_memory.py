"""An exporter that keeps finished spans in a list makes a long-lived server grow.
open-telemetry/opentelemetry-python#5281
A service records a span for each operation and shows the latest ones on a page."""
import contextlib
import itertools
import time

_ids = itertools.count(1)


class Span:
    def __init__(self, name, attributes):
        self.name = name
        self.attributes = attributes
        self.span_id = next(_ids)
        self.started = time.monotonic_ns()
        self.ended = None


class InMemoryExporter:
    def __init__(self):
        self._finished = []

    def export(self, span):
        self._finished.append(span)

    def latest(self, count):
        return [span.name for span in self._finished[-count:]]


exporter = InMemoryExporter()


@contextlib.contextmanager
def start_span(name, **attributes):
    span = Span(name, attributes)
    try:
        yield span
    finally:
        span.ended = time.monotonic_ns()
        exporter.export(span)


def operation(number):
    with start_span("query", statement=f"SELECT * FROM t WHERE id = {number} " + "AND 1 = 1 " * 40, rows=number % 17):
        with start_span("decode", payload=str(number) * 150):
            return sum(range(200))


for tick in range(70):
    for number in range(120):
        operation(tick * 120 + number)
    if tick % 5 == 0:
        print("tick", tick, exporter.latest(2), flush=True)
    time.sleep(0.07)
