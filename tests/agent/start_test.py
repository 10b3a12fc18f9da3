"""The agent starts unseen: output, errors, paths and the user's own sitecustomize are as without it."""

import unittest

from support import INJECT, main_at_once, pythons, run

FAILS = """
    import functools
    def inner(x):
        print("about to fail", x)
        return 1 / x
    def outer():
        for epoch in range(3):
            print(f"epoch {epoch}: loss 0.5")
        inner(0)
    outer()
"""


class Start(unittest.TestCase):
    def test_the_users_sitecustomize_runs_and_our_folder_is_gone_from_the_path(self):
        program = """
            import os, sys
            import sitecustomize
            print(sitecustomize.MARK, sitecustomize.__file__.startswith(os.environ["FOLDER"]))
            print([entry for entry in sys.path if "inject" in entry])
            print("inject" in os.environ["PYTHONPATH"])
            print("sitecustomize" in sys.modules, "millpond_agent" in sys.modules)
        """
        result = run(program, files={"sitecustomize.py": "MARK = 'mine'\n"})
        self.assertEqual(result.out.split("\n")[:4], ["mine True", "[]", "True", "True True"], result.err)
        self.assertEqual(result.err, "")

    def test_modules_in_python_that_only_the_agent_needs_are_not_there_for_the_program(self):
        program = """
            import sys
            seen = set(sys.modules)
            ran = set()
            def trace(frame, event, argument):
                ran.add(frame.f_globals.get("__name__"))
            print(sorted(name for name in seen if not name.startswith("millpond_agent") and str(getattr(sys.modules[name], "__file__", "")).endswith(".py")))
            sys.settrace(trace)
            import ast, collections, contextlib, ctypes, functools, json, linecache, re, threading, tokenize, weakref
            sys.settrace(None)
            print(sorted(name for name in ran if name and not name.startswith(("importlib", "_frozen", "millpond_agent"))))  # by a preloaded probe the last are unseen
            print(ctypes.sizeof(ctypes.c_int), json.loads("[1]"), threading.current_thread() is threading.main_thread(), collections.deque is type(collections.deque()))
            for epoch in range(20):
                print(f"epoch {epoch}: loss 0.5")
                kept = [bytes(100000) for _ in range(20)]
            print(sorted(linecache.cache))
        """
        for version, python in pythons().items():
            with self.subTest(version):
                alone, watched = run(program, agent=False, python=python), run(program, python=python)
                self.assertEqual(watched.out, alone.out)
                self.assertEqual(watched.err, alone.err)

    def test_an_error_in_the_users_sitecustomize_is_shown_as_without_us(self):
        files = {"sitecustomize.py": "import nowhere_to_be_found\n"}
        alone, watched = (run("print('on')", agent=agent, files=files) for agent in (False, True))
        self.assertEqual(alone.out, watched.out)
        self.assertIn("nowhere_to_be_found", watched.err)

    def test_start_says_what_runs(self):
        result = run("import sys; print(sys.argv[1:])", arguments=("--lr", "0.1"))
        note = result.notes("start")[0]
        self.assertTrue(note["script"].endswith("train.py"))
        self.assertEqual(note["argv"][1:], ["--lr", "0.1"])
        self.assertEqual(result.out, "['--lr', '0.1']\n")
        self.assertIsNone(result.notes("end")[0]["exception"])

    def test_without_listener_nothing_is_wrapped(self):
        result = run("print(type(print).__name__)", agent=False, environment={"PYTHONPATH": INJECT})
        self.assertEqual((result.out, result.err), ("builtin_function_or_method\n", ""))

    def test_an_exception_is_noted_and_its_traceback_is_as_without_us(self):
        alone, watched = run(FAILS, agent=False), run(FAILS)
        self.assertEqual(watched.out, alone.out)
        self.assertEqual(watched.err.replace(watched.folder, ""), alone.err.replace(alone.folder, ""))
        self.assertEqual(watched.code, 1)
        self.assertEqual(watched.notes("end")[0]["exception"], "ZeroDivisionError")

    def test_print_keeps_its_meaning(self):
        program = """
            import io, inspect, pickle, sys
            out = io.StringIO()
            for i in range(4):
                print("a", 1, sep="-", end="|", file=out)
            print(out.getvalue(), print.__name__, pickle.loads(pickle.dumps(print)) is print)
            try:
                print("x", nonsense=1)
            except TypeError as error:
                print("TypeError")
            class Closed(io.StringIO):
                def write(self, text): raise OSError("closed")
            try:
                print("x", file=Closed())
            except OSError as error:
                print(error)
        """
        alone, watched = run(program, agent=False), run(program)
        self.assertEqual(watched.out, alone.out)
        self.assertEqual(watched.err, "")

    def test_warnings_name_the_callers_line(self):
        files = {"keras/__init__.py": "__version__ = '3'\n", "keras/src/__init__.py": "", "keras/src/trainers/__init__.py": "",
                 "keras/src/trainers/trainer.py": """
                     import warnings
                     class Trainer:
                         def compile(self):
                             warnings.warn("careful", stacklevel=2)
                 """}
        program = """
            from keras.src.trainers.trainer import Trainer
            Trainer().compile()
        """
        alone, watched = (run(program, agent=agent, files=files) for agent in (False, True))
        self.assertIn("careful", watched.err)
        self.assertEqual(watched.err.replace(watched.folder, ""), alone.err.replace(alone.folder, ""))

    def test_a_child_by_fork_is_quiet_and_a_spawned_one_is_watched(self):
        program = """
            import multiprocessing, os, sys, time
            def work(n):
                for epoch in range(6):
                    time.sleep(0.06)
                    print(f"epoch {epoch}: child {n}")
            if __name__ == "__main__":
                for method in ("fork", "spawn"):
                    child = multiprocessing.get_context(method).Process(target=work, args=(1,))
                    child.start(); child.join()
        """
        result = run(program)
        self.assertEqual(result.out.count("epoch"), 12, result.err)
        self.assertEqual(result.err, "")
        self.assertGreaterEqual(len(result.notes("start")), 2)  # this one and the spawned one; spawn's resource tracker is one too
        # counted as the program counts, from 0
        self.assertEqual(max(mark["index"] for mark in result.marks("epoch", 4)), 5)
        self.assertEqual(len([mark for mark in result.marks("epoch", 4) if mark["index"] == 0]), 1)

    def test_code_of_minus_c_counts_as_the_users(self):
        import os
        import subprocess
        import sys
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "log")
            env = dict(os.environ, PYTHONPATH=INJECT, MILLPOND_AGENT_LOG=log)
            subprocess.run([sys.executable, "-c", "import time\nfor i in range(5): print('epoch', i); time.sleep(0.06)"], env=env, check=True, capture_output=True)
            with open(log) as file:
                self.assertEqual(file.read().count('"mark": "epoch"'), 5)


if __name__ == "__main__":
    main_at_once()
