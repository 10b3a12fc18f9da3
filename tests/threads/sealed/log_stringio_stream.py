"""A log handler that writes into a StringIO keeps all lines, for flush() does not empty it.
hatchet-dev/hatchet#4432
A worker logs what it does; a handler forwards the lines to a sender."""
import io
import logging
import random
import time


class ForwardingHandler(logging.StreamHandler):
    def __init__(self, sender):
        super().__init__(io.StringIO())
        self.sender = sender

    def emit(self, record):
        super().emit(record)
        self.sender.publish(self.format(record))


class Sender:
    def __init__(self):
        self.sent = 0

    def publish(self, line):
        self.sent += len(line)


def step(log, rng, number):
    for part in range(150):
        values = " ".join(f"{rng.random():.6f}" for _ in range(250))
        log.info("step %d part %d values %s", number, part, values)


def main():
    sender = Sender()
    log = logging.getLogger("worker")
    log.setLevel(logging.INFO)
    log.propagate = False
    log.addHandler(ForwardingHandler(sender))
    rng = random.Random(0)
    for number in range(90):
        step(log, rng, number)
        time.sleep(0.05)
    print(sender.sent)


if __name__ == "__main__":
    main()
