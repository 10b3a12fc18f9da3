"""A replay buffer takes its whole size in advance and its pages become resident little by little.
tensorflow/agents#800
Fills a preallocated table of experiences and fits a linear value function to samples of it."""
import numpy as np

ROWS, WIDTH = 220_000, 40
EPISODES = 80


class ReplayTable:
    def __init__(self):
        self.states = np.zeros((ROWS, WIDTH))
        self.rewards = np.zeros(ROWS)
        self.used = 0

    def extend(self, states, rewards):
        count = min(len(states), ROWS - self.used)
        self.states[self.used:self.used + count] = states[:count]
        self.rewards[self.used:self.used + count] = rewards[:count]
        self.used += count

    def sample(self, rng, size):
        rows = rng.integers(0, self.used, size)
        return self.states[rows], self.rewards[rows]


def main():
    rng = np.random.default_rng(0)
    table, value = ReplayTable(), np.zeros(WIDTH)
    truth = rng.standard_normal(WIDTH)
    for _ in range(EPISODES):
        states = rng.standard_normal((3200, WIDTH))
        table.extend(states, states @ truth)
        for _ in range(120):
            x, y = table.sample(rng, 3000)
            value -= 0.05 * x.T @ (x @ value - y) / len(y)
    print(np.abs(value - truth).max())


if __name__ == "__main__":
    main()
