"""Memory does not go down after a thread pool was shut down.
python/cpython#98467
Makes lists of numbers in a thread pool every round and drops them when the round is over."""
import random
import time
from concurrent.futures import ThreadPoolExecutor, as_completed


def numbers(seed):
    rng = random.Random(seed)
    return [rng.randint(0, 2 ** 31) for _ in range(12_000)]


def round_of_work(first, labels):
    with ThreadPoolExecutor(max_workers=4) as executor:
        futures = [executor.submit(numbers, first + n) for n in range(24)]
        total = 0
        for position, future in enumerate(as_completed(futures)):
            values = future.result()
            total += len(values)
            if position % 6 == 0:
                labels[position] = f"{first}-{values[0]}" * 20
    return total


def main():
    labels = {}
    for number in range(30):
        total = round_of_work(number * 100, labels)
        print(f"round {number}: {total} numbers, {len(labels)} labels", flush=True)
        time.sleep(0.05)


if __name__ == "__main__":
    main()
