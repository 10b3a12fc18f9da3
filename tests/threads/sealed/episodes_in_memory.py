"""Episodes are written to disk and also stay in memory, so the replay data keeps growing.
jsikyoon/dreamer-torch#8
An agent collects episodes of pictures, saves each to a file and trains on samples of them."""
import os
import tempfile
import time

import numpy as np


class Replay:
    def __init__(self, folder):
        self.folder = folder
        self.episodes = {}

    def add(self, number, episode):
        path = os.path.join(self.folder, f"episode{number}.npz")
        np.savez(path, **{key: value[:20] for key, value in episode.items()})
        self.episodes[path] = episode

    def sample(self, rng, length=50):
        episode = self.episodes[rng.choice(list(self.episodes))]
        start = rng.integers(0, len(episode["reward"]) - length)
        return {key: value[start:start + length] for key, value in episode.items()}


def play(rng, steps=1500):
    return {"image": rng.integers(0, 255, (steps, 64, 64, 3), dtype=np.uint8), "reward": rng.random(steps)}


def main():
    rng = np.random.default_rng(6)
    with tempfile.TemporaryDirectory() as folder:
        replay = Replay(folder)
        for number in range(16):
            replay.add(number, play(rng))
            loss = np.mean([replay.sample(rng)["image"].mean() for _ in range(150)])
            print(f"episode {number}: {loss:.4f}", flush=True)
            time.sleep(0.28)


if __name__ == "__main__":
    main()
