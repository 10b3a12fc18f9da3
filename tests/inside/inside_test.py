"""millpond._inside: the probe comes into a Python program that runs, finds what grows, and leaves the program as it was."""
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from tables import ONE_HEAP  # noqa: E402
from support import BUILD, EXAMPLE, LEAK, LIBRARY, MILLPOND, Folder, environment, pythons, report, run  # noqa: E402

INTERPRETERS = pythons(free_threaded=True)

LEAKY = """
import os, random, sys
import logging, json, ctypes, socket, atexit, ast, bisect, contextlib, heapq, gc, inspect, math, re, shutil, time, traceback, types, collections, weakref, linecache, tokenize, functools, signal
import tables
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import leaky_training as leaky
from millpond import _inside

def all_of_it():
    return {"words": tables.words(), "allocators": tables.allocators(), "traces": tables.traces(), "objects": tables.objects()}

def same(before, after):
    changed = [(key, word, after["words"].get(key)) for key, word in before["words"].items() if word != after["words"].get(key)]  # of modules that came meanwhile nothing is known from before
    if changed:
        raise SystemExit("words differ: %r" % changed[:3])
    for part in ("allocators", "traces"):
        if before[part] != after[part]:
            raise SystemExit("%s differ: %r, then %r" % (part, before[part], after[part]))
    wrong = tables.differences(before["objects"], after["objects"])
    if wrong:
        raise SystemExit("\\n".join(wrong))

ctypes.CDLL(_inside.probe_library())  # what stays: the library
_inside._agent()                      # and the agent's own modules
before = all_of_it()
"""


class Inside(unittest.TestCase):
    def test_the_leak_is_found_with_its_line_and_everything_is_as_before(self):
        self.assertTrue(INTERPRETERS, "no Python from 3.9 to 3.15 is here")
        for version, python in INTERPRETERS.items():
            with self.subTest(version), Folder() as folder:
                # LD_BIND_NOW: otherwise a function that is called for the first time meanwhile changes its own word.
                said = run(python, LEAKY + """
session = _inside.enter()
folder = session._collector.folder
assert os.listdir(folder)
during = tables.words(tables.FAMILY)
changed = sum(before["words"][key] != value for key, value in during.items())
assert changed >= 10, changed
assert tables.allocators() != before["allocators"]
trainer, rng = leaky.Trainer(), random.Random(7)
for epoch in range(12):
    for _ in range(25):
        trainer.train_on(leaky.make_batch(rng))
    session.mark_round("epoch", epoch)
print(session.leave())
assert not os.path.exists(folder)
assert session.remarks == [], session.remarks
same(before, all_of_it())
again = _inside.enter("second.pond", probes=False)
kept = [bytearray(1000) for _ in range(1000)]
again.leave()
same(before, all_of_it())
del trainer, kept  # sampled inside, freed after leaving
print("unharmed")
""", folder, arguments=[EXAMPLE], LD_BIND_NOW="1")
                self.assertEqual(said, [os.path.join(folder, "run.pond"), "unharmed"])
                self.assertEqual(sorted(os.listdir(folder)), ["program.py", "run.pond", "second.pond"])
                found = report(said[0])
                self.assertEqual(found["verdict"], "leak", found)
                blame = found["findings"][0]["blame"]
                self.assertEqual((os.path.basename(blame["file"]), blame["line"]), ("leaky_training.py", LEAK), found["findings"][0])

    def test_no_mapping_of_ours_is_left_but_the_library(self):
        for version, python in INTERPRETERS.items():
            with self.subTest(version), Folder() as folder:
                said = run(python, LEAKY + """
session = _inside.enter("warm.pond")  # modules in C that the agent imports stay, and what they take once
session.leave()
before = tables.mappings()
for times in range(3):
    session = _inside.enter("%d.pond" % times)
    assert tables.mappings() != before
    trainer, rng = leaky.Trainer(), random.Random(7)
    for epoch in range(4):
        trainer.train_on(leaky.make_batch(rng))
        session.mark_round("epoch", epoch)
    session.leave()
    now = tables.mappings()
    assert now == before, sorted(now ^ before)
print("unharmed")
""", folder, arguments=[EXAMPLE], LD_BIND_NOW="1", **ONE_HEAP)
                self.assertEqual(said, ["unharmed"])

    def test_no_callback_of_ctypes_is_made_for_which_newer_libffi_would_keep_a_descriptor_open(self):
        for version, python in INTERPRETERS.items():
            with self.subTest(version), Folder() as folder:
                run(python, """
                    import ctypes, gc, time
                    from millpond import _inside
                    def callbacks():
                        return sum(type(thing).__name__ == "CThunkObject" for thing in gc.get_objects())
                    before = callbacks()
                    kept = ctypes.CFUNCTYPE(ctypes.c_int)(int)
                    assert callbacks() == before + 1, "callbacks cannot be counted"
                    session = _inside.enter()
                    until = time.monotonic() + 1
                    while time.monotonic() < until:  # long enough for the agent to be called by the interpreter
                        [bytearray(100000) for _ in range(100)]
                    assert callbacks() == before + 1, callbacks()
                    session.leave()
                    assert callbacks() == before + 1, callbacks()
                    """, folder)

    def test_an_interrupt_in_the_middle_of_our_work_is_the_programs(self):
        with Folder() as folder:
            said = run(sys.executable, """
                import _thread, signal, sys
                from millpond import _inside
                session = _inside.enter()
                from millpond_agent import once
                calls = []
                def interrupted():
                    calls.append(1)
                    if len(calls) == 1:
                        _thread.interrupt_main()
                        for _ in range(1000): pass
                once._call = interrupted
                kept = []
                try:
                    while len(calls) < 3:
                        kept[:] = [bytearray(100000) for _ in range(100)]
                    print("no interrupt")
                except KeyboardInterrupt:
                    print("interrupted")
                session.leave()
                """, folder)
            self.assertEqual(said, ["interrupted"])

    def test_a_word_that_was_not_bound_yet_is_changed_and_put_back_too(self):
        with Folder() as folder:
            run(sys.executable, LEAKY + """
names = ("valloc", "pvalloc", "memalign", "aligned_alloc") + tables.FAMILY
before = tables.words(names)
_inside.enter("run.pond").leave()
after = tables.words(names)
# The loader may have bound a word in the meantime, because somebody called it for the first time: then it is the C library's own function.
import ctypes
library = ctypes.CDLL(None)
for key in before.keys() | after.keys():
    own = ctypes.cast(getattr(library, key[1]), ctypes.c_void_p).value
    assert after.get(key) == before.get(key) or after[key] == (own, before[key][1]), (key, before.get(key), after.get(key), own)
""", folder, arguments=[EXAMPLE])

    def test_one_session_at_a_time_and_a_sentence_otherwise(self):
        with Folder() as folder:
            said = run(sys.executable, """
                import os
                from millpond import _inside
                first = _inside.enter("one.pond")
                try:
                    _inside.enter("two.pond")
                except _inside.InsideError as error:
                    print(error)
                assert _inside.current() is first
                assert first.leave() == first.leave() == os.path.abspath("one.pond")
                assert _inside.current() is None
                try:
                    _inside.enter("one.pond")
                except _inside.InsideError as error:
                    print(error)
                os.environ["MILLPOND"] = "/nowhere/millpond"
                try:
                    _inside.enter()
                except _inside.InsideError as error:
                    print(error)
                """, folder)
            self.assertRegex(said[0], r"^this process is being watched already \(run file .*one\.pond\); leave that session first$")
            self.assertIn("one.pond", said[1])
            self.assertEqual(said[2], "there is no program /nowhere/millpond; the environment variable MILLPOND names it")
            self.assertEqual(sorted(os.listdir(folder)), ["one.pond", "program.py"])

    def test_under_millpond_watch_a_session_joins_and_leaves_nothing_undone(self):
        with Folder() as folder:
            with open(os.path.join(folder, "program.py"), "w") as file:
                file.write("from millpond import _inside\nwith _inside.enter('mine.pond') as session:\n    for i in range(8):\n        kept = [bytearray(100000) for _ in range(20)]\n"
                           "        session.mark_round('turn', i)\nprint(session.joined, session.path, session.leave())\nprint('after', sum(range(10)))\n")
            done = subprocess.run([MILLPOND, "watch", "-o", "outer.pond", "--", sys.executable, "program.py"], cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stdout.decode()), (0, "True None None\nafter 45\n"), done.stderr.decode())
            self.assertEqual(sorted(os.listdir(folder)), ["outer.pond", "program.py"])
            rounds = subprocess.run([sys.executable, "-c", "import sqlite3; print(sqlite3.connect('file:outer.pond?mode=ro', uri=True).execute(\"select count(*) from marks where kind = 'round'\").fetchone()[0])"],
                                    cwd=folder, stdout=subprocess.PIPE)
            self.assertEqual(rounds.stdout.strip(), b"8")

    def test_the_collector_is_no_child_of_the_program(self):
        with Folder() as folder:
            run(sys.executable, """
                import os, signal
                from millpond import _inside
                heard = []
                signal.signal(signal.SIGCHLD, lambda *_: heard.append(1))
                session = _inside.enter()
                try:
                    os.waitpid(-1, os.WNOHANG)
                    raise SystemExit("there is a child")
                except ChildProcessError:
                    pass
                session.leave()
                assert not heard
                """, folder)

    def test_children_that_fork_inside_and_after_leaving_live_and_keep_out_of_the_parents_session(self):
        with Folder() as folder:
            said = run(sys.executable, """
                import os, tables
                from millpond import _inside
                def child(work):
                    pid = os.fork()
                    if pid == 0:
                        try:
                            work()
                            os._exit(0)
                        except BaseException as error:
                            print(error, flush=True)
                            os._exit(1)
                    assert os.waitpid(pid, 0)[1] == 0
                before = tables.words(tables.FAMILY)
                with _inside.enter() as session:
                    def inside():
                        kept = [bytearray(1000) for _ in range(10000)]
                        assert not session.active and _inside.current() is None
                    child(inside)
                    def unchanged():  # modules that were loaded since have words that were not there before
                        now = tables.words(tables.FAMILY)
                        return before.items() <= now.items()
                    def leaves():
                        assert session.leave() is None
                        assert unchanged()
                        with _inside.enter("child.pond") as own:
                            kept = [bytearray(1000) for _ in range(10000)]
                    child(leaves)
                    assert session.active
                def after():
                    assert unchanged()
                child(after)
                print(session.path)
                """, folder, LD_BIND_NOW="1")
            self.assertEqual(sorted(os.listdir(folder)), ["child.pond", "program.py", "run.pond"])
            self.assertEqual(said, [os.path.join(folder, "run.pond")])

    def test_a_program_that_ends_or_dies_inside_has_its_run_file(self):
        for ending, code in (("raise SystemExit(3)", 3), ("os.kill(os.getpid(), 9)", -9)):
            with self.subTest(ending), Folder() as folder:
                run(sys.executable, "import os, time\nfrom millpond import _inside\nsession = _inside.enter()\nkept = [bytearray(100000) for _ in range(100)]\ntime.sleep(0.3)\n" + ending, folder, code=code)
                for _ in range(200):  # the collector writes it on its own
                    try:
                        found = report(os.path.join(folder, "run.pond"))
                        if found["program"]["command"]:
                            break
                    except AssertionError:
                        pass
                    import time
                    time.sleep(0.05)
                self.assertIn("verdict", found)

    def test_a_module_that_is_loaded_while_inside_is_seen_too(self):
        with Folder() as folder:
            run(sys.executable, """
                import os, sys, time
                import tables
                from millpond import _inside
                session = _inside.enter()
                before = set(path for path, _, _, _ in tables.words(tables.FAMILY))
                import _decimal, _sqlite3
                kept, until = [], time.monotonic() + 20
                while time.monotonic() < until:
                    kept.append(bytearray(300000))
                    found = tables.words(tables.FAMILY)
                    new = {value for (path, name, kind, _), (value, _) in found.items() if name == "malloc" and kind != tables.kPointer and path not in before}
                    old = {value for (path, name, _, _), (value, _) in found.items() if name == "malloc" and path in before}
                    if new and new <= old:
                        break
                else:
                    raise SystemExit("not seen")
                session.leave()
                """, folder)

    def test_tracemalloc_that_begins_inside_goes_on_after_leaving(self):
        with Folder() as folder:
            run(sys.executable, """
                import tracemalloc
                from millpond import _inside
                session = _inside.enter()
                tracemalloc.start()
                kept = [bytearray(1000) for _ in range(1000)]
                session.leave()
                assert any("wrapped Python's allocators" in remark for remark in session.remarks), session.remarks
                more = [bytearray(1000) for _ in range(1000)]
                assert tracemalloc.get_traced_memory()[0] > 2000000
                with _inside.enter("second.pond"):
                    more += [object() for _ in range(100000)]
                tracemalloc.stop()
                del kept, more
                more = [object() for _ in range(100000)]
                """, folder)

    def test_what_was_wrapped_of_a_framework_is_the_same_object_again(self):
        python = next((path for path in ("/usr/bin/python3", sys.executable) if os.path.exists(path) and
                       subprocess.run([path, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"], stderr=subprocess.DEVNULL).returncode == 0), None)
        if python is None:
            self.skipTest("no Python with torch is here")
        with Folder() as folder:
            run(python, """
                import torch, torch.utils.data
                from millpond import _inside
                def look():
                    found = {}
                    for owner in (torch.Tensor, torch.optim.Optimizer, torch.optim.SGD, torch.utils.data.DataLoader, torch.autograd.graph.saved_tensors_hooks):
                        found.update({(owner, name): value for name, value in vars(owner).items() if callable(value)})
                    return found
                model = torch.nn.Linear(4, 1)
                torch.optim.SGD(model.parameters(), lr=0.1)  # torch 1 wraps the step of a class when the first one is made
                before = look()
                session = _inside.enter()
                assert any(value is not before[key] for key, value in look().items()), "nothing was wrapped"
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                for _ in range(20):
                    model(torch.ones(2, 4)).sum().backward()
                    optimizer.step()
                session.leave()
                after = look()
                assert before.keys() == after.keys()
                assert not [key for key, value in before.items() if after[key] is not value]
                model(torch.ones(2, 4)).sum().backward()
                optimizer.step()
                """, folder)

    def test_many_stays_while_four_threads_allocate_and_free(self):
        for version, python in sorted(INTERPRETERS.items())[-1:]:
            with self.subTest(version):
                done = subprocess.run([python, os.path.join(HERE, "stress.py"), LIBRARY, "40"], env=environment(MILLPOND_INTERVAL="4096"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=200)
                self.assertEqual(done.returncode, 0, done.stdout.decode())
        done = subprocess.run([os.path.join(BUILD, "tests", "visited"), LIBRARY, "200"], env=environment(MILLPOND_INTERVAL="4096"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=200)
        self.assertEqual((done.returncode, done.stdout.decode()), (0, "refused 0, left 0, wrong 0\n"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
