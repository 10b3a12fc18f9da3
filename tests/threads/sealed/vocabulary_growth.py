"""The vocabulary takes more memory with each document, though less and less.
D-Robotics/rdk_model_zoo#116
Counts the words of documents; new words become rarer because the language is finite."""
import random
import time
from itertools import accumulate


class Vocabulary:
    def __init__(self):
        self.ids = {}
        self.counts = []
        self.pieces = []

    def add(self, word):
        if word not in self.ids:
            self.ids[word] = len(self.ids)
            self.counts.append(0)
            self.pieces.append([word[i:i + 3] for i in range(0, len(word), 3)])
        number = self.ids[word]
        self.counts[number] += 1
        return number


def language(rng, size):
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(rng.choices(letters, k=15)) for _ in range(size)]
    weights = list(accumulate(1 / (n + 20) for n in range(size)))
    return words, weights


def main():
    rng = random.Random(40)
    words, weights = language(rng, 30_000)
    vocabulary = Vocabulary()
    for document in range(140):
        for word in rng.choices(words, cum_weights=weights, k=5000):
            vocabulary.add(word)
        if document % 7 == 6:
            print(f"document {document + 1}: {len(vocabulary.ids)} words", flush=True)
        time.sleep(0.03)


if __name__ == "__main__":
    main()
