"""Exceptions held in a store kept frames and their locals alive; the text of the error is enough.
RedHatInsights/insights-core#4763
Runs rules over reports; of a rule that fails only the formatted error is kept for a while."""
import collections
import time
import traceback

import numpy as np


class Broker:
    def __init__(self):
        self.errors = collections.OrderedDict()

    def add(self, component, error):
        self.errors[component] = traceback.format_exc(limit=2)
        while len(self.errors) > 50:
            self.errors.popitem(last=False)


def rule(report):
    matrix = np.outer(report, report)
    if report[0] > 0.6:
        raise RuntimeError(f"report out of range: {report[0]:.3f}")
    return matrix.trace()


def main():
    rng = np.random.default_rng(14)
    broker, total = Broker(), 0.0
    for number in range(240):
        try:
            total += rule(rng.random(500))
        except RuntimeError as error:
            broker.add(number, error)
        time.sleep(0.02)
    print(round(total, 2), len(broker.errors))


if __name__ == "__main__":
    main()
