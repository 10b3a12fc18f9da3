"""Memory of an agent grows steadily; it is the replay memory that is not full yet.
toshikwa/sac-discrete.pytorch#28
Q-learning on pixels with a replay memory of fixed capacity that fills up during the run."""
import random
import time
from collections import deque

import numpy as np

CAPACITY, STEPS, FRAME = 4500, 6000, (84, 84)


class Environment:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.frame = self.rng.integers(0, 255, FRAME, dtype=np.uint8)

    def step(self, action):
        frame = np.roll(self.frame, action + 1, axis=1)
        frame[:, 0] = self.rng.integers(0, 255, FRAME[0])
        self.frame = frame
        return frame, float(frame[:8, :8].mean()) / 255


def main():
    random.seed(3)
    env = Environment(3)
    memory = deque(maxlen=CAPACITY)
    values = np.zeros(4)
    state = env.frame
    for step in range(STEPS):
        action = int(values.argmax()) if random.random() > 0.2 else random.randrange(4)
        following, reward = env.step(action)
        memory.append((state, action, reward, following))
        state = following
        if step > 128:
            for s, a, r, n in random.sample(memory, 128):
                values[a] += 0.01 * (r + 0.9 * values.max() * n[0, 0] / 255 - values[a])
        if step % 20 == 0:
            time.sleep(0.008)
        if step % 200 == 199:
            print("episode", step // 200, values.round(3), flush=True)


main()
