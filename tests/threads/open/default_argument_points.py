"""A default argument that can change is made once and grows with each call.
YelpArchive/MOE#68
Bayesian search over a function; helper calls gather sampled points in a default list."""
import math
import random


def sample(low, high, count, points=[]):
    for _ in range(count):
        x = random.uniform(low, high)
        points.append((x, objective(x), [x ** k for k in range(12)]))
    return points[-count:]


def objective(x):
    return math.sin(3 * x) + 0.3 * x * x - 0.7 * x


def narrow(low, high, points):
    best = min(points, key=lambda point: point[1])[0]
    width = (high - low) * 0.45
    return max(-4, best - width), min(4, best + width)


def search(seed):
    random.seed(seed)
    low, high = -4.0, 4.0
    for _ in range(8):
        low, high = narrow(low, high, sample(low, high, 150))
    return (low + high) / 2


def main():
    results = []
    for restart in range(60):
        results.append(search(restart))
        if restart % 3 == 2:
            print(f"restart {restart + 1}: {results[-1]:.5f}", flush=True)
        sum(objective(i / 20_000) for i in range(520_000))


if __name__ == "__main__":
    main()
