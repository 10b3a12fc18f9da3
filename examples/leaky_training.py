"""A small training loop in plain Python whose memory grows: `millpond watch -- python3 examples/leaky_training.py` says why.

A linear model learns y = 3 x - 1 by gradient descent; the trainer remembers more than it needs."""
import random


class Trainer:
    def __init__(self):
        self.slope, self.offset = 0.0, 0.0
        self.seen = []

    def train_on(self, batch, rate=0.05):
        loss = 0.0
        for x, y in batch:
            error = self.slope * x + self.offset - y
            self.slope -= rate * error * x
            self.offset -= rate * error
            loss += error * error
        self.seen.append(batch)
        return loss / len(batch)


def make_batch(rng, size=2000):
    return [(x, 3 * x - 1 + rng.gauss(0, 0.1)) for x in (rng.random() for _ in range(size))]


def main():
    rng = random.Random(7)
    trainer = Trainer()
    for epoch in range(12):
        loss = sum(trainer.train_on(make_batch(rng)) for _ in range(25)) / 25
        print(f"epoch {epoch}: loss {loss:.4f}", flush=True)
    print(f"y = {trainer.slope:.2f} x {trainer.offset:+.2f}")


if __name__ == "__main__":
    main()
