"""With the profiler on, memory consumption increases all the time.
joerick/pyinstrument#169
Parses texts under a small call recorder and prints the most frequent calls now and then."""
import collections
import sys
import time


class Recorder:
    def __init__(self):
        self.events = []

    def __call__(self, frame, event, argument):
        if event == "call":
            self.events.append((time.perf_counter(), frame.f_code.co_name, frame.f_lineno))

    def top(self):
        return collections.Counter(name for _, name, _ in self.events[-5000:]).most_common(2)


def tokens(text):
    return [normal(word) for word in text.split()]


def normal(word):
    return strip(word).lower()


def strip(word):
    return word.strip(".,;")


def main():
    recorder = Recorder()
    text = "The quick, brown fox; jumps over a lazy dog. " * 60
    sys.setprofile(recorder)
    for document in range(90):
        for _ in range(3):
            tokens(text)
        if document % 10 == 9:
            print(f"document {document + 1}: {recorder.top()}", flush=True)
        time.sleep(0.05)
    sys.setprofile(None)


if __name__ == "__main__":
    main()
