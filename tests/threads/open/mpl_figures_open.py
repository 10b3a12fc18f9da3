"""Figures made with pyplot stay until they are closed.
quantopian/alphalens#241
Makes a sheet of plots for each factor and saves it as a picture."""
import io

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np


class TearSheet:
    def __init__(self, name, returns):
        self.name = name
        self.returns = returns

    def plot(self):
        figure, axes = plt.subplots(2, 1, figsize=(4, 4), dpi=60)
        axes[0].plot(np.cumsum(self.returns))
        axes[1].hist(self.returns, bins=30)
        figure.suptitle(self.name)
        return figure


def save(figure):
    target = io.BytesIO()
    figure.savefig(target, format="png")
    return target.tell()


def main():
    plt.rcParams["figure.max_open_warning"] = 0
    rng = np.random.default_rng(7)
    for factor in range(40):
        sheet = TearSheet(f"factor {factor}", rng.normal(size=20_000))
        size = save(sheet.plot())
        print(f"sheet {factor}: {size} bytes", flush=True)


if __name__ == "__main__":
    main()
