"""Once the buffer is full, memory consumption fluctuates a little and does not grow.
facebookresearch/hanabi_SAD#14
Game sessions open and close at random; the number of open ones wanders around a mean."""
import random
import time


class Session:
    def __init__(self, rng):
        self.ends = rng.expovariate(1 / 12)
        self.board = rng.randbytes(rng.randint(50_000, 350_000))

    def score(self):
        return sum(self.board[:500])


def main():
    rng = random.Random(13)
    sessions, scored = [], 0
    for tick in range(160):
        for session in sessions:
            session.ends -= 1
        scored += sum(s.score() for s in sessions if s.ends <= 0)
        sessions = [s for s in sessions if s.ends > 0]
        arrivals = rng.randint(0, 6)
        sessions.extend(Session(rng) for _ in range(arrivals))
        print(f"tick {tick}: {len(sessions)} open", flush=True)
        time.sleep(0.04)
    print(scored)


if __name__ == "__main__":
    main()
