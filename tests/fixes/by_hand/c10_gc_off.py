import gc
import time

import numpy as np

EPOCHS = 24
EPISODES = 12
STATE = 60000

gc.disable()  # collections cost 3 % of an epoch


class Branch:
    def __init__(self, state, parent=None):
        self.state = state
        self.parent = parent
        self.children = []
        if parent is not None:
            parent.children.append(self)


def search(rng, weights, depth=4):
    root = Branch(rng.random(STATE, dtype=np.float32))
    here = root
    for _ in range(depth):
        here = Branch(here.state * 0.9 + weights[:STATE] * 0.1, here)
    return float(here.state.mean())


def main():
    rng = np.random.default_rng(8)
    weights = np.zeros(STATE, np.float32)
    for epoch in range(EPOCHS):
        scores = []
        for _ in range(EPISODES):
            scores.append(search(rng, weights))
            time.sleep(0.008)  # the simulator
            weights += 0.01 * (rng.random(STATE, dtype=np.float32) - weights)
        gc.collect()
        print(f"epoch {epoch}: score {np.mean(scores):.4f}", flush=True)


if __name__ == "__main__":
    main()
