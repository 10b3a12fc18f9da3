"""Who holds the survivors: the walk finds every kind of holder by its name, what no root reaches, and leaves the program as it was."""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from support import Folder, pythons, watched  # noqa: E402

INTERPRETERS = pythons(free_threaded=True)
EACH = 150_000
ROUNDS = 26
PROGRAM = """
import atexit, gc, logging, os, signal, sys, threading, time
from collections import deque

def payload():
    return bytearray(150_000)

class Trainer:
    shared = {}
    def __init__(self):
        self.seen, self.window, self.parts = [], deque(maxlen=4), {"train": [], "test": []}
    def step(self, n):
        self.seen.append(payload())
        self.window.append(payload())
        self.parts["test"].append((n, payload()))
        Trainer.shared[n] = payload()

class Slots:
    __slots__ = ("kept",)
    def __init__(self):
        self.kept = set()

class Memo(bytes):
    pass

def cached(n, memo={}):
    memo[n] = payload()

def remembering():
    kept = []
    def remember():
        kept.append(payload())
    return remember

def stream():
    inside = []
    while True:
        inside.append(payload())
        yield len(inside)

class Link:
    def __init__(self, before):
        self.before, self.data = before, payload()

class Handler(logging.Handler):
    def __init__(self):
        super().__init__()
        self.data = payload()

class Circle:
    def __init__(self):
        self.me, self.data = self, payload()

local = threading.local()
ballast = [[] for _ in range(int(sys.argv[1]))]
children = []
signal.signal(signal.SIGCHLD, lambda *_: children.append(1))

def main():
    trainer, slots, remember, numbers, link, local.kept = Trainer(), Slots(), remembering(), stream(), None, []
    gc.disable()
    for epoch in range(26):
        trainer.step(epoch)
        slots.kept.add(Memo(b"%d" % epoch + bytes(150_000)))
        cached(epoch)
        remember()
        next(numbers)
        link = Link(link)
        local.kept.append(payload())
        logging.getLogger("work").addHandler(Handler())
        atexit.register(len, payload())
        Circle()
        print("epoch", epoch, flush=True)
        time.sleep(0.1)

main()
try:
    os.waitpid(-1, os.WNOHANG)
    print("a child")
except ChildProcessError:
    print("no child")
print("signals", len(children))
"""


# It says nothing, and its main thread only waits.
SILENT = """
import threading, time

def work():
    kept = []
    for n in range(100):
        kept.append(bytearray(150_000))
        time.sleep(0.06)

worker = threading.Thread(target=work)
worker.start()
worker.join()
"""


# A library's function that hands on what it is given, and one that has it under a name; circles of three kinds, with the collector off.
HANDED = """
import gc, os, sys, time
sys.path.insert(0, "site-packages")
os.makedirs("site-packages", exist_ok=True)
with open("site-packages/trainer_library.py", "w") as file:
    file.write('''
import time

def passing_on(function):
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper

@passing_on
def fit(epochs, callbacks=None):
    watchers = list(callbacks)
    for epoch in range(epochs):
        for each in watchers:
            each.on_epoch_end(epoch)
        print("epoch", epoch, flush=True)
        time.sleep(0.1)
''')
import trainer_library

def payload():
    return bytearray(300_000)

class Keep:
    def __init__(self):
        self.kept = []
    def on_epoch_end(self, epoch):
        self.kept.append(payload())
        newest[0] = (epoch, payload())
        circles()

newest = [None] * 50

class Pair:
    def __init__(self, data):
        self.data, self.other = data, None

class Parent:
    def __init__(self, above=None):
        self.below, self.data, self.above = [], payload(), above
        if above is not None:
            above.below.append(self)  # closes

def circles():
    one, other = Pair(payload()), Pair(payload())
    one.other = other
    other.other = one  # closes
    Parent(Parent())

gc.disable()
trainer_library.fit(26, callbacks=[Keep()])
"""


def walks_of(python, folder, ballast=0, program=PROGRAM, **how):
    said, out = watched(python, folder, program, str(ballast), **how)
    return [row for row in said if row.get("note") == "walk"], out


def line_of(text):
    return next(number for number, line in enumerate(PROGRAM.split("\n"), 1) if text in line)


class Walks(unittest.TestCase):
    def check(self, version, walks, whole):
        self.assertTrue(walks, "no walk was made")
        walk = walks[-1]
        by_name = {row["chain"][0]: row for row in walk["holders"] if row["chain"] and row["how"] == "reached"}
        expected = ["attribute seen of Trainer", "attribute window of Trainer", "class attribute shared of Trainer", "default of argument memo of cached",
                    "variable kept in the closure of remembering.<locals>.remember", "attribute kept of Slots", "attribute handlers of Logger", "attribute kept of threading.local",
                    "local inside of stream"]
        if version != "3.9":  # atexit's table is the interpreter's own since 3.10
            expected.append("functions registered with atexit")
        if walk["period"] >= 12:  # a chain is one from eight links on
            expected.append("local link of main")
        for name in expected:
            self.assertIn(name, by_name, "%s: %s" % (version, sorted(by_name)))
        self.assertIn("item 'test' of dict", by_name)
        self.assertEqual(by_name["item 'test' of dict"]["chain"][:3], ["item 'test' of dict", "attribute parts of Trainer", "local trainer of main"])
        self.assertEqual(by_name["attribute window of Trainer"]["bounded"], 4)
        if walk["period"] >= 12:
            self.assertTrue(by_name["local link of main"].get("repeats"), by_name["local link of main"])
        if whole:  # of what is always recorded the amounts are what the program kept by then
            kept = walk["period"] - 2  # the first rounds lie before the first mark
            row = by_name["attribute seen of Trainer"]
            self.assertLess(abs(row["bytes"] - kept * EACH), 4 * EACH, row)
            first, *others = row["born"]  # now and then the list's own storage is sampled too, which the line that appends allocates
            self.assertEqual(first["line"], line_of("return bytearray"))
            self.assertLess(sum(place["bytes"] for place in others), 0.1 * first["bytes"], row["born"])
            self.assertLess(by_name["attribute window of Trainer"]["bytes"], 5.5 * EACH)
        everything = [each for each in walks if not each.get("shallow")]
        how = {row["how"]: row for each in everything for row in each["holders"] if row["how"] != "reached" and row["type"] in ("Circle", "dict")}
        if whole:  # what no root reaches: circles while gc is off
            self.assertIn("garbage", how, sorted(by_name))
            self.assertIn(how["garbage"]["type"], ("Circle", "dict"))
            native = how.get("native", {"bytes": 0})["bytes"]  # a sample of 8 KiB now and then: what the agent keeps is not walked into
            self.assertLess(native, 0.05 * how["garbage"]["bytes"], how)

    def test_every_kind_of_holder_is_found_by_its_name_and_amounts_are_true(self):
        for version, python in sorted(INTERPRETERS.items()):
            with self.subTest(version), Folder() as folder:
                walks, out = walks_of(python, folder)
                self.assertFalse(walks[-1]["apart"])
                self.check(version, walks, whole=True)
                self.assertTrue(out.endswith("no child\nsignals 0\n"), out[-200:])

    def test_a_chain_ends_at_a_name_and_the_lines_that_tie_circles_are_told(self):
        closes = {number for number, line in enumerate(HANDED.split("\n"), 1) if "# closes" in line}
        for version, python in sorted(INTERPRETERS.items()):
            if version.endswith("t"):
                continue  # no walk is made
            with self.subTest(version), Folder() as folder:
                # What is kept is always recorded, and hardly anything else: a second block of the module's would be a holder's too.
                walks, _ = walks_of(python, folder, program=HANDED, interval=1 << 18)
                self.assertTrue(walks, "no walk was made")
                kept = [row for row in walks[-1]["holders"] if row["chain"][:1] == ["attribute kept of Keep"]]
                self.assertTrue(kept, walks[-1]["holders"])
                self.assertIn(kept[0]["chain"][-1], ["local %s of fit" % name for name in ("watchers", "callbacks", "each")], kept[0]["chain"])
                one = [row for row in walks[-1]["holders"] if row["chain"][:1] == ["global newest of __main__"]]
                self.assertTrue(one and one[0]["length"] == 50, "of a single survivor the fullest container is the holder")
                garbage = {row["type"]: row for walk in walks for row in walk["holders"] if row["how"] == "garbage"}
                self.assertLessEqual({"Pair", "Parent"}, set(garbage), "circles are told by the class of their objects")
                if version not in ("3.9", "3.10"):  # where instructions are counted
                    for name in ("Pair", "Parent"):
                        first = garbage[name].get("puts", [{}])[0]
                        self.assertIn(first.get("line"), closes, (name, garbage[name].get("puts")))

    def test_a_silent_program_whose_main_thread_waits_is_walked_too(self):
        for version in [version for version in ("3.9", "3.11", "3.13") if version in INTERPRETERS]:
            with self.subTest(version), Folder() as folder:
                walks, _ = walks_of(INTERPRETERS[version], folder, program=SILENT)
                self.assertTrue(walks, "no walk was made")
                self.assertIn("local kept of work in another thread", [row["chain"][0] for walk in walks for row in walk["holders"] if row["chain"]])

    def test_a_large_program_is_walked_in_a_child_that_it_does_not_see(self):
        for version in [version for version in ("3.9", "3.11", "3.13") if version in INTERPRETERS]:
            with self.subTest(version), Folder() as folder:
                walks, out = walks_of(INTERPRETERS[version], folder, ballast=400_000)
                self.assertTrue(walks and walks[-1]["apart"], [(walk["period"], walk["apart"], walk["objects"]) for walk in walks])
                self.check(version, walks, whole=False)
                self.assertTrue(out.endswith("no child\nsignals 0\n"), out[-200:])


if __name__ == "__main__":
    unittest.main(verbosity=2)
