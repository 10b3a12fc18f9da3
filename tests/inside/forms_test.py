"""Both lines, for many forms of statements: what puts into a holder is told by the line that does it, under whatever name and by whatever way it is reached there."""
import json
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from support import Folder, pythons, watched  # noqa: E402

INTERPRETERS = pythons(free_threaded=True)
BEGIN = """
import collections, functools, heapq, io, pickle, queue, sys, threading, time, types, weakref

def payload():
    return bytearray(120_000)
"""
LOOP = """
    for epoch in range(26):
        one(epoch)
        print("epoch", epoch, flush=True)
        time.sleep(0.06)

main()
"""
# Programs: their text up to the loop, and for each holder, by a word of its chain (after ^: its first one), the comment at the line that puts.
PROGRAMS = {
    "items of a dictionary that stands for variables": ("""
def note(where, value):
    where.append(value)  # handed

def main():
    box = {"kept": [], "more": [], "log": collections.defaultdict(list), "parts": [], "heap": [], "given": [], "early": [], "count": 0}
    def one(n):
        value = payload()
        box["kept"].append(value)  # kept
        value = payload()
        box["more"] += [value]  # more
        value = payload()
        box["log"][n % 3].append(value)  # log
        value = payload()
        box["parts"] = box["parts"] + [value]  # parts
        value = payload()
        heapq.heappush(box["heap"], (n, value))  # heap
        value = payload()
        note(box["given"], value)
        box["count"] += 1
        box["early"].append(n)
""", {"'kept'": "# kept", "'more'": "# more", "'log'": "# log", "'parts'": "# parts", "'heap'": "# heap", "'given'": "# handed"}),
    "attributes of a name space": ("""
def main():
    space = types.SimpleNamespace(kept=[], heap=[], joined=[], table={}, count=0, queue=queue.SimpleQueue())
    def one(n):
        value = payload()
        space.kept.append(value)  # kept
        value = payload()
        heapq.heappush(space.heap, (n, value))  # heap
        value = payload()
        space.joined = space.joined + [value]  # joined
        value = payload()
        space.table |= {n: value}  # table
        value = payload()
        space.queue.put(value)  # queue
        space.count += 1
""", {"attribute kept of": "# kept", "attribute heap of": "# heap", "attribute joined of": "# joined", "attribute table of": "# table", "attribute queue of": "# queue"}),
    "other names and other ways": ("""
class Keeper:
    def __init__(self, where):
        self.where = where
    def keep(self, value):
        self.where.append(value)  # keeper

def hooked(into):
    def hook(value):
        into.append(value)  # hook
    return hook

class Open:
    pass

@functools.lru_cache(maxsize=None)  # cache
def cached(n):
    return payload()

kept, hooks, places, groups, sliced, opened = [], [], [None] * 1000, {"a": [], "b": []}, [], Open()
keeper, hook = Keeper(kept), hooked(hooks)

def main():
    def one(n):
        value = payload()
        keeper.keep(value)
        value = payload()
        hook(value)
        value = payload()
        places[n] = value  # place
        for group in groups.values():
            value = payload()
            group.append(value)  # group
        value = payload()
        sliced[len(sliced):] = [value]  # slice
        value = payload()
        setattr(opened, "part%d" % n, value)  # attribute
        cached(n)
""", {"global kept of": "# keeper", "global hooks of": "# hook", "global places of": "# place", "groups": "# group", "global sliced of": "# slice", "global opened of": "# attribute", "cache of cached": "# cache"}),
    "chains of objects": ("""
class Node:
    __slots__ = ("what", "after")
    def __init__(self, what):
        self.what, self.after = what, None

class Chain:
    def __init__(self):
        self.first = self.last = None
    def push(self, what):
        node = Node(what)
        if self.last is None:
            self.first = self.last = node
        else:
            self.last.after = node  # tie
            self.last = node  # also

class Link:
    def __init__(self, what, before):
        self.what = what
        self.before = before

def main():
    chain, head, pickler = Chain(), None, pickle.Pickler(io.BytesIO())
    def one(n):
        nonlocal head
        chain.push(payload())
        value = payload()
        head = Link(value, head)  # head
        value = bytes(payload())
        pickler.dump(value)  # pickler
""", {"^attribute first of Chain": "# tie", "^local head of main": "# head", "^local pickler of main": "# pickler"}),
    "what grows itself": ("""
def main():
    box, text = {"data": bytearray(), "buffer": io.BytesIO()}, b""
    def one(n):
        nonlocal text
        value = payload()
        box["data"] += value  # data
        value = payload()
        box["buffer"].write(value)  # buffer
        value = payload()
        text = text + value  # text
""", {"'data'": "# data", "'buffer'": "# buffer", "text": "# text"}),
}


def holders_of(said):
    """Of each holder, by its chain in words, the row that was told last, with the lines that put into it and its lengths."""
    found = {}
    for note in said:
        rows = note.get("holders", []) + note.get("growing", []) if note.get("note") in ("walk", "puts", "courses") else []
        for row in rows:
            found.setdefault(", ".join(row["chain"]), {}).update(row, grows=row in note.get("growing", []))
    return found


class Forms(unittest.TestCase):
    def test_the_line_that_puts_is_told_for_every_form(self):
        for name, (text, expected) in PROGRAMS.items():
            text = BEGIN + text + LOOP
            line_of = {mark: next(number for number, line in enumerate(text.split("\n"), 1) if line.endswith(mark)) for mark in expected.values()}
            for version, python in sorted(INTERPRETERS.items()):
                with self.subTest(name, version=version), Folder() as folder:
                    found = holders_of(watched(python, folder, text)[0])
                    for words, mark in expected.items():
                        rows = [row for chain, row in found.items() if words in "^" + chain and row.get("puts")]
                        self.assertTrue(rows, "%s: %s" % (words, json.dumps(sorted(found), indent=1)))
                        lines = {row["puts"][0]["line"] for row in rows}
                        self.assertEqual(lines, {line_of[mark]}, "%s: %s" % (words, json.dumps(rows, indent=1)[:3000]))

    def test_each_holder_has_its_own_course_in_exact_numbers(self):
        text, _ = PROGRAMS["items of a dictionary that stands for variables"]
        python = INTERPRETERS.get("3.11") or next(iter(INTERPRETERS.values()))
        with Folder() as folder:
            found = holders_of(watched(python, folder, BEGIN + text + LOOP)[0])
            lengths = next(row["lengths"] for chain, row in found.items() if "'kept'" in chain)
            self.assertGreaterEqual(len(lengths), 8)
            for period, items in lengths:
                self.assertEqual(items, period, lengths)
            together = next(row for chain, row in found.items() if chain.startswith("item 'log'"))
            self.assertEqual(together["alike"], 3)
            self.assertEqual(together["inner"][-1][1], together["inner"][-1][0] + 3, together["inner"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
