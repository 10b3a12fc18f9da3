"""Is it safe to leave a deterministic profiler on in a process that runs for long?
sumerc/yappi#132
Works under cProfile for the whole run; it keeps sums per function, not events."""
import cProfile
import io
import math
import pstats


def primes(limit):
    sieve = bytearray([1]) * limit
    for n in range(2, math.isqrt(limit) + 1):
        if sieve[n]:
            sieve[n * n::n] = bytes(len(range(n * n, limit, n)))
    return [n for n in range(2, limit) if sieve[n]]


def gaps(numbers):
    return [b - a for a, b in zip(numbers, numbers[1:])]


def mean(values):
    return math.fsum(values) / len(values)


def work(turn):
    return mean(gaps(primes(500_000 + turn * 10)))


def main():
    profile = cProfile.Profile()
    profile.enable()
    for turn in range(220):
        work(turn)
        if turn % 10 == 9:
            text = io.StringIO()
            pstats.Stats(profile, stream=text)
            print(f"turn {turn + 1}: {len(text.getvalue())} letters", flush=True)
    profile.disable()


if __name__ == "__main__":
    main()
