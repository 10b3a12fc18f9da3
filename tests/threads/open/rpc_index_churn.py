"""Resident memory climbs to a plateau far above what lives: free memory that the allocator does not give back.
amun-ai/hypha#976
A registry of services: entries of very different size come and go, about as many as leave."""
import random
import time


class Registry:
    def __init__(self, rng, limit):
        self.rng = rng
        self.limit = limit
        self.entries = {}
        self.next = 0

    def register(self):
        size = int(self.rng.paretovariate(1.1) * 600)
        self.entries[self.next] = bytearray(min(size, 400_000))
        self.next += 1

    def expire(self):
        while len(self.entries) > self.limit:
            gone = self.rng.choice(tuple(self.entries)) if self.next % 7 == 0 else next(iter(self.entries))
            del self.entries[gone]


def main():
    registry = Registry(random.Random(99), limit=5000)
    for minute in range(60):
        for _ in range(700):
            registry.register()
        registry.expire()
        alive = sum(len(entry) for entry in registry.entries.values())
        print(f"minute {minute}: {len(registry.entries)} entries, {alive} bytes", flush=True)
        time.sleep(0.06)


if __name__ == "__main__":
    main()
