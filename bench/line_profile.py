#!/usr/bin/env python3
"""What does profiling a function line by line cost? Millpond's @profile beside memory_profiler's, on the same functions, in turn. Added time is what the profiled call takes
beyond the bare one, the table included; the bar is a hundredth of memory_profiler's."""
import importlib
import io
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
os.environ.setdefault("MILLPOND", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "bin", "millpond"))

ROUNDS = 3
BAR = 100


def arithmetic(count):
    """Short lines that allocate next to nothing: the cost of a line by itself."""
    total = 0
    for i in range(count):
        total += i
        total ^= 5
    return total


def objects(count):
    """Lines that make and drop objects."""
    kept = []
    for i in range(count):
        item = [i, str(i)]
        kept.append(item)
        if len(kept) > 100:
            kept = []
    return len(kept)


def mixed(count):
    """Lines that call functions of Python, of C and of NumPy."""
    import numpy

    total = 0.0
    for i in range(count):
        values = numpy.arange(64 + i % 7, dtype=numpy.float64)
        total += float(values.sum())
        total -= inner(i % 5)
    return total


def inner(count):
    result = 0
    for i in range(count):
        result += i
    return result


FUNCTIONS = ((arithmetic, 20000), (objects, 10000), (mixed, 5000))


def seconds_of(call):
    begin = time.perf_counter()
    result = call()
    return time.perf_counter() - begin, result


def main():
    import millpond

    theirs = importlib.import_module("memory_profiler")
    failed = False
    print("%-11s %10s %22s %22s %9s" % ("function", "bare", "millpond adds", "memory_profiler adds", "ratio"))
    for function, count in FUNCTIONS:
        expected = function(count)  # also: warm
        ours = millpond.profile(function, stream=io.StringIO())
        profiled = theirs.profile(function, stream=io.StringIO())
        bare, our, their = [], [], []
        for _ in range(ROUNDS):
            for call, times in ((function, bare), (ours, our), (profiled, their)):
                spent, result = seconds_of(lambda: call(count))
                if result != expected:
                    raise SystemExit("%s gives %r under a profiler and %r without" % (function.__name__, result, expected))
                times.append(spent)
        lines = sum(line.hits for line in millpond.profile.last.functions[0].lines)
        plain = statistics.median(bare)
        added, theirs_added = statistics.median(our) - plain, statistics.median(their) - plain
        ratio = theirs_added / max(added, 1e-9)
        print("%-11s %7.1f ms %9.1f ms (%.2f us) %9.0f ms (%.1f us) %7.0fx" % (
            function.__name__, plain * 1e3, added * 1e3, added * 1e6 / lines, theirs_added * 1e3, theirs_added * 1e6 / lines, ratio))
        failed = failed or ratio < BAR
    print("in brackets: for each line that ran; medians of %d; the bar is %dx: %s" % (ROUNDS, BAR, "missed" if failed else "kept"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
