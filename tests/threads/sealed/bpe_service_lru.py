"""Chinese phrases fill the encoder's cache; after a day it holds a gigabyte and looks like a leak.
latitudegames/GPT-3-Encoder#35
Encodes the words of a large but finite vocabulary; a least-recently-used cache of fixed size answers repeated ones."""
import functools
import random
import time

ALPHABET = [chr(code) for code in range(0x4E00, 0x4E00 + 2000)]


@functools.lru_cache(maxsize=24_000)
def bpe(word):
    return tuple(f"{a}{b}" for a, b in zip(word, word[1:])) + (word,)


def vocabulary(rng, size):
    return ["".join(rng.choices(ALPHABET, k=12)) for _ in range(size)]


def main():
    rng = random.Random(21)
    words = vocabulary(rng, 80_000)
    total = 0
    for request in range(100):
        text = rng.choices(words, k=600)
        total += sum(len(bpe(word)) for word in text)
        time.sleep(0.06)
        if request % 10 == 9:
            print(f"request {request + 1}", bpe.cache_info().currsize, flush=True)
    print(total)


if __name__ == "__main__":
    main()
