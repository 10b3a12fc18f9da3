"""The rollout history of the training buffer is appended to and never trimmed.
PrimeIntellect-ai/prime-rl#1936
A policy-gradient loop whose buffer samples from the rollouts made so far."""
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Rollout:
    states: np.ndarray
    actions: np.ndarray
    reward: float


@dataclass
class Buffer:
    rng: np.random.Generator
    rollouts: list = field(default_factory=list)

    def add(self, rollout: Rollout) -> None:
        self.rollouts.append(rollout)

    def sample(self, n: int) -> list:
        picks = self.rng.integers(0, len(self.rollouts), n)
        return [self.rollouts[i] for i in picks]


def collect(rng, weights, length=1000):
    states = rng.standard_normal((length, weights.shape[0]))
    actions = (states @ weights).argmax(axis=1)
    return Rollout(states, actions, float(np.cos(actions).sum()))


def train(iterations=60, per_iteration=6):
    rng = np.random.default_rng(12)
    weights = rng.standard_normal((24, 4))
    buffer = Buffer(rng)
    for iteration in range(iterations):
        for _ in range(per_iteration):
            buffer.add(collect(rng, weights))
        for rollout in buffer.sample(600):
            chosen = np.eye(4)[rollout.actions]
            weights += 1e-6 * rollout.reward * rollout.states.T @ chosen
        print(f"iteration {iteration} |w| {np.linalg.norm(weights):.3f}", flush=True)


if __name__ == "__main__":
    train()
