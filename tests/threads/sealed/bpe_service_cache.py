"""The cache of the byte-pair encoder grows to a few million entries on long runs.
EleutherAI/gpt-neox#383
Answers requests that encode texts with a byte-pair encoder; words come back from a cache."""
import random
import string
import time


class Encoder:
    def __init__(self, merges):
        self.ranks = {pair: i for i, pair in enumerate(merges)}
        self.cache = {}

    def bpe(self, word):
        if word in self.cache:
            return self.cache[word]
        parts = list(word)
        while len(parts) > 1:
            pairs = [(self.ranks.get((a, b), 1 << 30), i) for i, (a, b) in enumerate(zip(parts, parts[1:]))]
            rank, at = min(pairs)
            if rank == 1 << 30:
                break
            parts[at:at + 2] = [parts[at] + parts[at + 1]]
        result = [part + "@@" for part in parts]
        self.cache[word] = result
        return result

    def encode(self, text):
        return [piece for word in text.split() for piece in self.bpe(word)]


def request(rng, words=300):
    return " ".join("".join(rng.choices(string.ascii_lowercase, k=rng.randint(8, 20))) for _ in range(words))


def main():
    rng = random.Random(9)
    merges = [(a, b) for a in "etaoin" for b in "srhldc"]
    encoder = Encoder(merges)
    pieces = 0
    for _ in range(120):
        pieces += len(encoder.encode(request(rng)))
        time.sleep(0.06)
    print(pieces)


if __name__ == "__main__":
    main()
