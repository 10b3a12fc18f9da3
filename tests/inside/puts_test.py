"""Which line puts things into a holder: the one that ran while the holder gained, whatever else could have."""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from support import Folder, pythons, watched  # noqa: E402

INTERPRETERS = pythons(free_threaded=True)
PROGRAM = """
import atexit, heapq, logging, queue, sys, threading, time
from collections import deque

def payload():
    return bytearray(150_000)

class Trainer:
    shared = {}
    def __init__(self):
        self.seen, self.parts, self.jobs, self.recent = [], {"train": [], "test": []}, queue.Queue(), deque(maxlen=8)
    def step(self, n, way):
        item = payload()
        if way == 1:
            self.seen.append(item)
        elif way == 2:
            self.seen.append(item)  # branch
        else:
            self.seen.insert(0, item)
        part = payload()
        self.parts["test"].append((n, part))  # nested
        whole = payload()
        Trainer.shared[n] = whole  # shared
        job = payload()
        self.jobs.put(job)  # queue
        self.recent.append(payload())  # recent
        heapq.heappush(heap, (n, payload()))  # heap
    def never(self):
        self.seen.append(payload())

class Other:
    def __init__(self):
        self.kept, self.seen = [], []
    def step(self):
        self.seen.append(0)

heap, results = [], []

def cached(n, memo={}):
    value = payload()
    memo[n] = value  # memo

def remembering():
    kept = []
    def remember():
        value = payload()
        kept.append(value)  # closure
    return remember

def other():
    kept = []
    for n in range(3):
        kept.append(payload())

def stream():
    inside = []
    while True:
        value = payload()
        inside.append(value)  # generator
        yield len(inside)

def collect(into, value):
    into.append(value)  # argument

class Handler(logging.Handler):
    def __init__(self):
        super().__init__()
        self.data = payload()

class Link:
    def __init__(self, before):
        self.before, self.data = before, payload()

local = threading.local()

def main():
    trainer, remember, numbers, link, local.kept, given = Trainer(), remembering(), stream(), None, [], []
    another = Other()
    other()
    for epoch in range(26):
        trainer.step(epoch, 2)
        cached(epoch)
        remember()
        next(numbers)
        value = payload()
        local.kept.append(value)  # thread local
        value = payload()
        collect(given, value)
        extend = results.extend
        extend([payload()])  # alias
        link = Link(link)  # chain
        logging.getLogger("work").addHandler(Handler())  # handler
        atexit.register(len, payload())  # atexit
        another.kept.append(0)
        another.step()
        value = None
        print("epoch", epoch, flush=True)
        time.sleep(0.1)

if len(sys.argv) > 1:
    def tracing(frame, event, argument):
        return tracing
    sys.settrace(tracing)
main()
"""
COUNTED = {"attribute seen of Trainer": "# branch", "item 'test' of dict": "# nested", "class attribute shared of Trainer": "# shared", "attribute queue of Queue": "# queue",
           "default of argument memo of cached": "# memo", "variable kept in the closure of remembering.<locals>.remember": "# closure", "local inside of stream": "# generator",
           "local given of main": "# argument", "attribute kept of threading.local": "# thread local", "global heap of __main__": "# heap", "global results of __main__": "# alias",
           "attribute handlers of Logger": "# handler", "local link of main": "# chain"}
BORN = ("global heap of __main__", "attribute handlers of Logger")  # what is made in the statement that puts it is seen by its births too


# A list of each thread of a pool, which no name in the source says to be a list.
THREADS = """
import threading, time
from concurrent.futures import ThreadPoolExecutor

local = threading.local()

def work(n):
    if not hasattr(local, "scratch"):
        local.scratch = []
    local.scratch.append(bytearray(150_000))  # thread's
    return n

with ThreadPoolExecutor(3) as pool:
    for epoch in range(24):
        list(pool.map(work, range(3)))
        print("epoch", epoch, flush=True)
        time.sleep(0.1)
"""


# A text that is replaced by a longer one, and looked at by other lines.
REPLACED = """
import time

text = ""
for epoch in range(24):
    text = text + "x" * 150_000  # grows
    print("epoch", epoch, text.title()[:1], text.zfill(3)[-1:], flush=True)
    time.sleep(0.1)
"""


# Threads that wait for ever, each with something of its own.
WAITING = """
import queue, threading, time

never = queue.Queue()

def wait(data):
    never.get()
    return len(data)

for epoch in range(24):
    for _ in range(2):
        threading.Thread(target=wait, args=(bytearray(150_000),), daemon=True).start()  # starts
    print("epoch", epoch, flush=True)
    time.sleep(0.1)
"""


def run(python, folder, *arguments):
    said, _ = watched(python, folder, PROGRAM, *arguments)
    found = {}
    for note in said:
        if note.get("note") == "puts":
            for row in note["holders"]:
                found[row["chain"][0]] = row
    return found, [row for row in said if row.get("note") == "walk"]


def line_of(text):
    return next(number for number, line in enumerate(PROGRAM.split("\n"), 1) if text in line)


class Puts(unittest.TestCase):
    def test_the_line_that_ran_is_told_for_every_kind_of_holder(self):
        for version, python in sorted(INTERPRETERS.items()):
            with self.subTest(version), Folder() as folder:
                found, walks = run(python, folder)
                counts = tuple(int(part) for part in version.split(".")) >= (3, 11)
                for holder, text in COUNTED.items():
                    if not counts and holder not in BORN:
                        continue
                    self.assertIn(holder, found, sorted(found))
                    puts = found[holder]["puts"]
                    self.assertEqual([row["line"] for row in puts], [line_of(text)], "%s %s" % (holder, puts))
                    if counts:
                        self.assertEqual(puts[0]["by"], "counted", puts)
                        self.assertGreater(puts[0]["seen"], 0)
                registered = found.get("functions registered with atexit")
                if version != "3.9":
                    self.assertEqual([row["line"] for row in registered["puts"]], [line_of("# atexit")])
                never = {line_of("self.seen.append(payload())"), line_of("self.seen.insert"), line_of("if way == 1") + 1, line_of("for n in range(3)") + 1}
                self.assertFalse(never & {row["line"] for holder in found.values() for row in holder["puts"]}, found)
                window = next(row for row in walks[-1]["holders"] if row["chain"][0] == "attribute recent of Trainer")
                self.assertEqual(window["bound"], 8)
                self.assertLessEqual(window["len"], 8)

    def test_a_container_whose_line_no_source_gives_has_the_one_that_ran(self):
        for version in [version for version in ("3.11", "3.12", "3.13") if version in INTERPRETERS]:
            with self.subTest(version), Folder() as folder:
                said, _ = watched(INTERPRETERS[version], folder, THREADS)
                rows = [row for note in said if note.get("note") == "holders" for row in note["containers"] if row["holder"].startswith("local")]
                self.assertTrue(rows, "the lists of the threads are told")
                self.assertEqual((rows[-1]["line"], rows[-1]["found_by"]), (THREADS[: THREADS.index("# thread's")].count("\n") + 1, "ran"), rows[-1])

    def test_of_a_text_that_is_replaced_the_line_is_told_that_assigns_it_not_those_that_read_it(self):
        for version in [version for version in ("3.11", "3.12", "3.13") if version in INTERPRETERS]:
            with self.subTest(version), Folder() as folder:
                said, _ = watched(INTERPRETERS[version], folder, REPLACED)
                lines = {put["line"] for note in said if note.get("note") == "puts" for row in note["holders"] if row["chain"][0] == "global text of __main__" for put in row["puts"]}
                self.assertEqual(lines, {REPLACED[: REPLACED.index("# grows")].count("\n") + 1})

    def test_what_many_threads_hold_in_one_function_is_one_holder_with_the_line_that_made_it(self):
        for version in [version for version in ("3.9", "3.12") if version in INTERPRETERS]:
            with self.subTest(version), Folder() as folder:
                said, _ = watched(INTERPRETERS[version], folder, WAITING)
                row = [note for note in said if note.get("note") == "walk"][-1]["holders"][0]
                self.assertEqual(row["chain"], ["variables of wait in other threads"])
                self.assertGreater(row["items"], 16)
                self.assertEqual(row["born"][0]["line"], WAITING[: WAITING.index("# starts")].count("\n") + 1)

    def test_the_steps_of_a_chain_have_kinds_and_types(self):
        python = INTERPRETERS[max(INTERPRETERS, key=lambda version: int(version.rstrip("t").split(".")[1]))]
        with Folder() as folder:
            _, walks = run(python, folder)
            steps = {row["chain"][0]: row["steps"] for row in walks[-1]["holders"] if row["chain"]}
            self.assertEqual(steps["attribute seen of Trainer"][0], {"kind": "attribute", "name": "seen", "of": "__main__.Trainer"})
            self.assertEqual(steps["attribute seen of Trainer"][1]["kind"], "local")
            self.assertEqual(steps["attribute handlers of Logger"][0]["is"], ["logging.Logger"])
            self.assertEqual(steps["attribute kept of threading.local"][0]["kind"], "thread_local")
            self.assertEqual(steps["functions registered with atexit"][0], {"kind": "registry", "name": "atexit", "of": "builtins.module"})
            self.assertEqual(steps["local inside of stream"][0]["kind"], "frame")

    def test_a_program_that_traces_itself_goes_on_doing_so(self):
        for version in [version for version in ("3.9", "3.11", "3.13") if version in INTERPRETERS]:
            with self.subTest(version), Folder() as folder:
                found, _ = run(INTERPRETERS[version], folder, "trace")
                for row in found.values():
                    self.assertNotIn(line_of("self.seen.append(payload())"), [put["line"] for put in row["puts"]])


if __name__ == "__main__":
    unittest.main(verbosity=2)
