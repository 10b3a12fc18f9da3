"""Rounds of about the same length, whatever the machine."""
import time


class Rounds:
    def __init__(self, count, seconds=0.3):
        self.count, self.seconds = count, seconds

    def __iter__(self):
        for index in range(self.count):
            begin = time.monotonic()
            yield index
            print("epoch %d" % index, flush=True)
            time.sleep(max(0.0, self.seconds - (time.monotonic() - begin)))
