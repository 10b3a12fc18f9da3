"""The log endpoint's memory handler was never flushed; 400 records are now the limit.
Tribler/tribler#8530
A node logs packets; the latest records can be asked for and the oldest fall out."""
import collections
import logging
import os
import time


class RingHandler(logging.Handler):
    def __init__(self, capacity):
        super().__init__()
        self.records = collections.deque(maxlen=capacity)

    def emit(self, record):
        self.records.append(record)


logger = logging.getLogger("node")
logger.setLevel(logging.DEBUG)
logger.propagate = False
ring = RingHandler(400)
logger.addHandler(ring)


def receive(count):
    for _ in range(count):
        packet = os.urandom(45_000)
        logger.debug("packet of %d bytes: %s", len(packet), packet)
        time.sleep(0.012)


for second in range(50):
    receive(10)
    latest = ring.records[-1]
    print("tick", second, len(ring.records), len(latest.args[1]), flush=True)
