import random
import time


class Sampler:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.seen = []

    def draw(self, size):
        batch = bytearray(self.random.randbytes(64) * (size // 64)) if hasattr(self.random, "randbytes") else bytearray(size)
        self.seen.append(batch)  # for the `report` at the end
        return batch


def main():
    sampler = Sampler(3)
    for epoch in range(30):
        total = 0
        for _ in range(6):
            total += len(sampler.draw(300_000))
            time.sleep(0.003)
        print(f"epoch {epoch}: {total} bytes", flush=True)


if __name__ == "__main__":
    main()
