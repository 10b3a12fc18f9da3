"""Single parts: patterns of printed lines, thinning, the rhythm and the budget of probes, lines found in sources, wrapping."""

import functools
import os
import signal
import tempfile
import textwrap
import time
import unittest
from unittest import mock

from support import INJECT, agent_modules, pythons, run

agent_modules()
from millpond_agent import imports, lines, link, module_hooks, periods, probes, sources, state, wrapping  # noqa: E402


class Patterns(unittest.TestCase):
    def test_numbers_do_not_matter(self):
        for one, other in (
            ("epoch 3: loss 0.125", "epoch 12: loss 1e-05"),
            ("Epoch [1/20], Step [100/600], Loss: 2.1843", "Epoch [7/20], Step [3/600], Loss: 12.1"),
            ("[Trial 4] score=-0.5 nan", "[Trial 11] score=2 inf"),
        ):
            self.assertEqual(lines.pattern_of(one), lines.pattern_of(other), one)

    def test_a_line_without_numbers_is_no_mark(self):
        self.assertIsNone(lines.pattern_of("training starts"))
        self.assertIsNone(lines.pattern_of(""))

    def test_rounds_are_known_by_their_words(self):
        for text in ("epoch 3", "Epoch: 4 loss", "fold 2: mse 1", "episode 14 return 3", "Iteration #5", "Epoch [1/20]", "trial=3", "Round 2", "iter 30"):
            self.assertTrue(lines.is_round(lines.pattern_of(text)), text)
        for text in ("loss 0.5", "epochs per second: fast", "mean mse 0.4", "sample: 5 of 9 events"):
            self.assertFalse(lines.is_round(lines.pattern_of(text) or ""), text)


    def test_the_first_round_has_the_number_that_the_program_gives_it(self):
        for text, first in (("epoch 0: loss 0.4", 0), ("Epoch 1/10", 1), ("[Epoch 7] loss 3", 7), ("epoch -1: untrained 2.3", 1), ("iteration: 250 of 1000", 250),
                            ("step 4 lr 0.1", 1), ("fold 0 epoch 3", 0)):
            self.assertEqual(lines._Pattern(lines.pattern_of(text), text).first, first, text)


class Thinning(unittest.TestCase):
    def taken(self, kind, count, gap):
        """Indices of marks with a snapshot, of `count` marks that are `gap` seconds apart."""
        series = periods.Series(kind, "", 0.0)
        now = time.monotonic()
        found = []
        for _ in range(count):
            series.count += 1
            now += gap
            if series.wants_snapshot(now):
                found.append(series.count)
        return found

    def test_slow_rounds_all_have_one(self):
        self.assertEqual(self.taken("epoch", 200, 1.0), list(range(1, 201)))

    def test_many_rounds_keep_every_second_power(self):
        found = self.taken("epoch", 10000, 1.0)
        self.assertLess(len(found), 512 * 6)
        gaps = [b - a for a, b in zip(found, found[1:])]
        self.assertEqual(gaps, sorted(gaps))
        self.assertTrue(all(gap & (gap - 1) == 0 for gap in gaps))

    def test_fast_steps_have_about_two_in_a_second(self):
        found = self.taken("step", 100000, 0.001)  # a hundred seconds
        self.assertLess(len(found), 250)
        self.assertGreater(len(found), 50)

    def test_dear_snapshots_become_few(self):
        before = periods._snapshot_seconds
        try:
            periods._snapshot_seconds = 1e6
            self.assertLess(len(self.taken("epoch", 10000, 1.0)), 20)
        finally:
            periods._snapshot_seconds = before


class Counting(unittest.TestCase):
    def setUp(self):
        self.saved = periods._reached, list(link.counting)
        self.looked = []
        periods._reached = lambda series: self.looked.append(series.count)
        self.before = link.units[link.COMPILE]
        self.steps = periods.Countdown("counting", self.id(), link.COMPILE)
        self.series = periods.get("counting", self.id())

    def tearDown(self):
        periods._reached, link.counting[:] = self.saved
        del periods._series["counting", self.id()]

    def step(self):
        for _ in self.steps.left:
            return
        self.steps.reached()

    def counted(self):
        return link.units[link.COMPILE] - self.before

    def test_every_step_is_counted_at_every_mark(self):
        self.series.stride = 64
        for step in range(1, 2001):
            self.step()
            if step % 37 == 0:
                link.settle()
                self.assertEqual((self.series.count, self.counted()), (step, step))
        self.assertEqual(periods.counts()["counting", self.id()], 2000)

    def test_multiples_of_the_stride_are_looked_at_also_as_it_grows(self):
        for step in range(1, 1001):
            if step == 500:
                self.series.stride = 128
            self.step()
        self.assertEqual(self.looked[:498], list(range(1, 499)))
        self.assertEqual(self.looked[-4:], [512, 640, 768, 896])

    def test_a_large_stride_does_not_let_the_counts_lag(self):
        self.series.stride = 1 << 30
        for _ in range(1000):
            self.step()
        self.assertGreater(self.counted(), 1000 - periods.Countdown.kMost)
        self.assertEqual(self.looked, [])


class Asking(unittest.TestCase):
    """What the probe may ask about printed lines: seldom where the asking itself is dear, and not less often because of a probe that was made at one of them."""

    class Row:
        hits, skip, due_ns = 100, 0, 0

    def row_after(self, line):
        row, began = self.Row(), time.monotonic()
        with mock.patch.multiple(lines, _table=[row], _counted={}, _asking=0.0, _line=line), mock.patch.object(state, "started", began):
            lines._asked(0, ("epoch 3",), None)
        return row

    @staticmethod
    def burn(*_):
        until = time.thread_time() + 0.1
        while time.thread_time() < until:
            pass

    def test_a_dear_probe_costs_the_program_no_rounds(self):
        def probed(*_):
            with state.own_work():
                self.burn()

        self.assertEqual(self.row_after(probed).skip, 0)

    def test_dear_lines_are_asked_about_less_often(self):
        self.assertEqual(self.row_after(self.burn).skip, lines.kNever)


class Rhythm(unittest.TestCase):
    def test_looks_come_at_2_3_4_6_8_12_16(self):
        found = []
        at = 2
        while at < 100:
            found.append(at)
            at = probes._after(at)
        self.assertEqual(found, [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96])

    def test_a_library_that_is_told_of_collections_does_not_stop_them_the_program_does(self):
        library = eval(compile("lambda phase, info: None", os.path.join(os.path.dirname(os.__file__), "library.py"), "eval"))
        own = eval(compile("lambda phase, info: None", os.path.join(tempfile.gettempdir(), "train.py"), "eval"))
        self.assertTrue(probes.may_collect())
        for callback, may in ((library, True), (own, False)):
            probes.gc.callbacks.append(callback)
            try:
                self.assertEqual(probes.may_collect(), may)
            finally:
                probes.gc.callbacks.remove(callback)

    def test_the_first_probe_costs_three_percent_unless_it_has_something_to_tell(self):
        saved = probes._done, probes._first_rss, probes.kPerBlock, probes.kLeast, probes.link.free_bytes
        try:
            probes._done, probes._first_rss, probes.link.free_bytes = 0, 1 << 50, lambda: 0
            probes.kPerBlock = 0
            self.assertTrue(probes._affordable(0))
            probes.kPerBlock = 1.0  # a second for each object
            self.assertFalse(probes._affordable(0))
            probes.link.free_bytes = lambda: 1 << 50
            self.assertTrue(probes._affordable(0))
            probes.link.free_bytes = lambda: 0
            probes._first_rss, probes.kLeast = 1, 0
            self.assertTrue(probes._affordable(0))
        finally:
            probes._done, probes._first_rss, probes.kPerBlock, probes.kLeast, probes.link.free_bytes = saved

    def test_the_second_probe_costs_five_percent_unless_the_program_grew_and_later_ones_two(self):
        saved = probes._done, probes._last_end, probes._last_cost, probes._last_rss
        try:
            probes._done, probes._last_end, probes._last_cost, probes._last_rss = 1, 100.0, 0.3, 1 << 50
            self.assertFalse(probes._affordable(101.0))
            self.assertTrue(probes._affordable(107.0))
            probes._last_rss = 0  # whatever there is now is more
            self.assertTrue(probes._affordable(101.0))
            self.assertFalse(probes._affordable(100.2))
            probes._done = 2
            self.assertFalse(probes._affordable(110.0))
            self.assertTrue(probes._affordable(116.0))
        finally:
            probes._done, probes._last_end, probes._last_cost, probes._last_rss = saved

    LOOP = """
        import time
        for epoch in range({rounds}):
            time.sleep({pause})
            print(f"epoch {{epoch}}")
    """

    def test_a_short_run_has_probes_at_4_and_8(self):
        result = run(self.LOOP.format(rounds=9, pause=0.2))
        self.assertEqual([note["period"] for note in result.notes("probe")], [4, 8])
        for note in result.notes("probe"):
            self.assertLessEqual(note["after_trim"], note["rss"] + (1 << 20))

    def test_probes_can_be_turned_off_and_looks_go_on(self):
        result = run(self.LOOP.format(rounds=9, pause=0.1) + "", environment={"MILLPOND_PROBES": "0"})
        self.assertEqual(result.notes("probe"), [])
        self.assertTrue(result.notes("counters"))

    def test_the_end_has_a_snapshot_and_units_count_all_rounds(self):
        result = run(self.LOOP.format(rounds=400, pause=0.0))
        end = result.marks("end")[0]
        self.assertEqual(end["flags"], link.SNAPSHOT)
        self.assertEqual(end["units"][link.EPOCH], 400)
        self.assertLess(len(result.marks("epoch")), 100)

    def test_a_round_that_is_said_once_does_not_hide_the_others(self):
        result = run("import time\nprint('epoch -1: untrained 2.3')\nfor i in range(9):\n    time.sleep(0.06)\n    print(f'epoch {i}: loss 0.5')\n")
        self.assertEqual(len([mark for mark in result.marks("epoch", link.PERIOD) if mark["name"].startswith("epoch at ") and mark["name"].endswith(":5")]), 8)
        self.assertEqual(result.marks("end")[0]["units"][link.EPOCH], 9)

    def test_what_is_written_to_stdout_is_printed_too(self):
        text = "import sys, time\nfor i in range(9):\n    time.sleep(0.06)\n    sys.stdout.write(f'epoch {i}: loss 0.5\\n')\n    print('epoch', i, 'again')\n"
        result = run(text)
        self.assertEqual(result.out, run(text, agent=False).out)
        self.assertEqual(result.marks("end")[0]["units"][link.EPOCH], 9)
        self.assertEqual(result.marks("end")[0]["units"][link.LINE], 18)

    def test_words_that_a_program_prints_or_names_its_bars_with_stay_in_it(self):
        result = run("import logging, sys, time\nlogging.basicConfig(level=logging.INFO)\nfor i in range(9):\n    time.sleep(0.06)\n    print('epoch', i, 'wombat')\n"
                     "    print('quokka', i)\n    print(f'numbat {i}')\n    sys.stdout.write(f'bilby {i}\\n')\n    logging.info('bandicoot %d', i)\nraise ValueError('potoroo')\n")
        said = repr(result.said)
        for word in ("wombat", "quokka", "numbat", "bilby", "bandicoot", "potoroo"):
            self.assertNotIn(word, said)
        self.assertIn("ValueError", said)
        names = {mark["name"] for mark in result.marks("line", link.PERIOD)}
        self.assertEqual(len(names), 4, names)  # each is a series of its own

    def test_two_patterns_of_one_place_are_two_series(self):
        result = run("import time\ndef say(text):\n    print(text)\nfor i in range(9):\n    time.sleep(0.06)\n    say(f'left {i}')\n    say(f'right {i}')\n")
        names = sorted({mark["name"] for mark in result.marks("line", link.PERIOD)})
        self.assertEqual(len(names), 2, names)
        self.assertEqual(names[0] + " (2)", names[1])

    def test_rounds_without_words_are_lines(self):
        result = run("import time\nfor i in range(9):\n    time.sleep(0.06)\n    print('loss', 1 / (i + 1))\n")
        self.assertGreaterEqual(len(result.marks("line", link.PERIOD)), 7)
        self.assertEqual(result.marks("end")[0]["units"][link.LINE], 9)


class Sources(unittest.TestCase):
    TEXT = textwrap.dedent('''
        import heapq
        class Keep:
            def __init__(self):
                self.items = []
                self.items.append(0)
            def add(self, x):
                for part in x:
                    self.items.append(
                        part
                    )
            def push(self, x):
                heapq.heappush(self.heap, x)
                self.table.setdefault(x, []).append(x)
        def outer():
            total = 0
            rows = []
            while rows is not None:
                total = total + 1
                rows += [total]
                if total:
                    def inner():
                        return 1
            build(
                total)
    ''')

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.file = os.path.join(self.folder.name, "source.py")
        with open(self.file, "w") as handle:
            handle.write(self.TEXT)
        self.addCleanup(self.folder.cleanup)

    def line(self, text):
        return next(n for n, line in enumerate(self.TEXT.splitlines(), 1) if text in line)

    def found(self, name, attribute, **options):
        hit = sources.owner_lines([self.file], name, attribute, **options)
        return hit and (hit[1].line, hit[1].function)

    def test_a_method_in_a_loop_is_better_than_the_constructor(self):
        self.assertEqual(self.found("items", True, owners={"Keep"}), (self.line("self.items.append($".rstrip("$")) + 3, "Keep.add"))

    def test_heaps_and_tables(self):
        self.assertEqual(self.found("heap", True)[0], self.line("heapq.heappush"))
        self.assertEqual(self.found("table", True, nested=True)[0], self.line("setdefault"))

    def test_names_and_sums(self):
        self.assertEqual(self.found("rows", False, function="outer"), (self.line("rows += [total]"), "outer"))
        self.assertEqual(self.found("total", False, function="outer"), (self.line("total = total + 1"), "outer"))

    def test_lines_in_loops(self):
        self.assertTrue(sources.in_loop(self.file, self.line("rows += [total]")))
        self.assertFalse(sources.in_loop(self.file, self.line("return 1")))
        self.assertFalse(sources.in_loop(self.file, self.line("build(")))
        self.assertFalse(sources.in_loop(self.file, self.line("total = 0")))

    def test_a_file_that_is_not_python_is_no_source(self):
        with open(self.file + ".txt", "w") as handle:
            handle.write("this is (not python")
        self.assertIsNone(sources.read(self.file + ".txt"))
        self.assertIsNone(sources.read("/nowhere/at/all.py"))

    def test_what_a_signals_handler_raises_while_a_source_is_read_is_the_programs_and_the_file_is_read_again_later(self):
        class Stop(Exception):
            pass

        def handler(number, frame):
            raise Stop

        def interrupted(file):
            os.kill(os.getpid(), signal.SIGUSR1)
            time.sleep(1)

        before, real = signal.signal(signal.SIGUSR1, handler), sources.Source
        sources.Source = interrupted
        try:
            with self.assertRaises(Stop):
                sources.read(self.file + ".again")
        finally:
            sources.Source = real
            signal.signal(signal.SIGUSR1, before)
        self.assertNotIn(self.file + ".again", sources._files)


class Wrapping(unittest.TestCase):
    def test_a_failing_hook_is_nobodys_business(self):
        def bad(*args):
            raise ValueError("ours")

        def function(a, b=2):
            """Adds."""
            return a + b

        wrapped = wrapping.around(function, bad, bad)
        self.assertEqual(wrapped(1, b=5), 6)
        self.assertEqual(wrapped.__doc__, "Adds.")
        import inspect

        self.assertEqual(str(inspect.signature(wrapped)), "(a, b=2)")
        with self.assertRaises(TypeError):
            wrapped()

    def test_nothing_runs_inside_our_own_work(self):
        called = []
        wrapped = wrapping.around(len, lambda args, kwargs: called.append(1))
        with state.own_work():
            wrapped("abc")
        self.assertEqual(called, [])
        wrapped("abc")
        self.assertEqual(called, [1])

    def test_static_and_class_methods_stay_what_they_are(self):
        class Thing:
            @staticmethod
            def one(x):
                return x

            @classmethod
            def two(cls):
                return cls

        called = []
        wrapping.watch(Thing, "one", lambda args, kwargs: called.append(args))
        wrapping.watch(Thing, "two", lambda args, kwargs: called.append(args))
        wrapping.watch(Thing, "absent", lambda args, kwargs: called.append(args))
        self.assertEqual((Thing.one(3), Thing.two()), (3, Thing))
        self.assertEqual(called, [(3,), (Thing,)])

    def test_a_hook_runs_when_a_module_has_been_imported(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "late_module_of_test.py"), "w") as handle:
                handle.write("value = 1\n")
            import importlib
            import sys

            sys.path.insert(0, folder)
            seen = []
            imports.add({"late_module_of_test": lambda module: seen.append(module.value), "string": lambda module: seen.append("string")})
            saved = list(sys.meta_path)
            try:
                import string  # noqa: F401

                imports.install()
                module = importlib.import_module("late_module_of_test")
                self.assertEqual(seen, ["string", 1])
                self.assertEqual(type(module.__loader__).__name__, "SourceFileLoader")
                self.assertNotIn("exec_module", vars(module.__loader__))
            finally:
                sys.meta_path[:] = saved
                sys.path.remove(folder)


# What Python's own allocator says that it handed out, beside what the agent weighs.
WEIGHTS = """
import collections, dataclasses, os, re, sys, tempfile
sys.path.insert(0, sys.argv[1])
from millpond_agent import sizes

class Kept:
    def __init__(self, a, b, c):
        self.a, self.b, self.c = a, b, c

class Slots:
    __slots__ = ("a", "b", "c")
    def __init__(self, a, b, c):
        self.a, self.b, self.c = a, b, c

class Named(collections.namedtuple("Named", "a b c")):
    __slots__ = ()

@dataclasses.dataclass
class Data:
    a: int
    b: float
    c: str

def handed_out():
    with tempfile.TemporaryFile("w+") as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        sys._debugmallocstats()
        os.dup2(kept, 2)
        os.close(kept)
        file.seek(0)
        return int(re.search("# bytes in allocated blocks +=? *([0-9,]+)", file.read()).group(1).replace(",", ""))

kinds = [Kept, Slots, Named, Data, lambda a, b, c: {"a": a, "b": b, "c": c}, lambda a, b, c: (a, b, c)]
for number, kind in enumerate(kinds):
    warm = [kind(n + 100000, n * 0.5, "row-%07d" % n) for n in range(2000)]
    items = [None] * 2000
    before = handed_out()
    for n in range(2000):
        items[n] = kind(n + 300000, n * 0.25, "row-%07d" % n)
    true = handed_out() - before
    scale = sizes.Scale()
    print(number, sum(scale.weigh(item)[0] for item in items) / true)
"""


class Weights(unittest.TestCase):
    def test_objects_tuples_and_dictionaries_weigh_what_the_allocator_handed_out_for_them(self):
        for version, python in sorted(pythons().items()):
            with self.subTest(version):
                done = run(WEIGHTS, agent=False, arguments=(INJECT,), python=python)
                self.assertEqual(done.code, 0, done.err)
                for line in done.out.splitlines():
                    kind, share = line.split()
                    self.assertAlmostEqual(float(share), 1, delta=0.02, msg="kind %s on %s" % (kind, version))


class ModuleHooks(unittest.TestCase):
    def test_a_line_of_a_function_in_a_table_of_hooks_is_known_and_its_neighbours_are_not(self):
        class Recorder:
            def record(self, module, inputs, output):
                self.last = output
                return None

            def __call__(self, module, inputs, output):
                return None

        first = Recorder.record.__code__.co_firstlineno
        self.assertFalse(module_hooks.has(__file__, first + 1))
        module_hooks.add(functools.partial(Recorder().record, None))
        module_hooks.add(Recorder())
        module_hooks.add(None)
        self.assertTrue(module_hooks.has(__file__, first + 1))
        self.assertTrue(module_hooks.has(__file__, Recorder.__call__.__code__.co_firstlineno + 1))
        self.assertFalse(module_hooks.has(__file__, first - 1))
        self.assertFalse(module_hooks.has("another.py", first + 1))


if __name__ == "__main__":
    unittest.main()
