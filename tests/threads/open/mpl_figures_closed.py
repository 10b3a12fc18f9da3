"""Figures linger unless they are closed after saving.
matplotlib/matplotlib#8519
Draws a diagram per epoch of a small fit and closes it after it was saved."""
import io

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np


def draw(history, prediction):
    fig, ax = plt.subplots(figsize=(4, 3), dpi=40)
    ax.plot(history, label="loss")
    ax.scatter(np.arange(len(prediction)), prediction, s=1)
    ax.legend()
    with io.BytesIO() as target:
        fig.savefig(target, format="png")
        size = target.tell()
    plt.close(fig)
    return size


rng = np.random.default_rng(1)
x = rng.random((3000, 10))
y = x @ rng.random(10)
weights, history = np.zeros(10), []
for epoch in range(80):
    error = x @ weights - y
    weights -= 0.1 * x.T @ error / len(y)
    history.append(float(np.square(error).mean()))
    size = draw(history, x @ weights)
    print(f"epoch {epoch}: loss {history[-1]:.5f}, picture of {size} bytes", flush=True)
