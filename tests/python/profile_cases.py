"""@millpond.profile in one interpreter; profile_test.py runs this in every one that is here."""
import asyncio
import functools
import io
import os
import subprocess
import sys
import threading
import tracemalloc
import unittest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "python"))
import millpond  # noqa: E402

MIB = 1 << 20
BLOCK = 4 * MIB


def profiled(function):
    return millpond.profile(function, stream=False)


def rows(name=None):
    """Lines of the last profile by their marks (# a, # b, ...)."""
    found = {}
    for function in millpond.profile.last.functions:
        if name is None or function.name.split(".")[-1] == name:
            for line in function.lines:
                if "# " in line.text:
                    found[line.text.rpartition("# ")[2].strip()] = line
    return found


class Profile(unittest.TestCase):
    def near(self, bytes_, expected, within=20000):
        self.assertLess(abs(bytes_ - expected), within, "%d is not about %d" % (bytes_, expected))

    def test_each_line_has_what_it_took_gave_back_and_kept(self):
        @profiled
        def work():
            kept = bytearray(BLOCK)  # take
            other = bytearray(3 * BLOCK)  # more
            del other  # give
            return kept  # end

        work()
        seen = rows()
        self.near(seen["take"].change, BLOCK)
        self.near(seen["take"].allocated, BLOCK)
        self.near(seen["more"].change, 3 * BLOCK)
        self.near(seen["give"].change, -3 * BLOCK)
        self.near(seen["give"].freed, 3 * BLOCK)
        self.near(seen["give"].peak - seen["take"].before, 4 * BLOCK)
        self.near(seen["end"].change, 0)
        self.assertEqual([seen[mark].hits for mark in ("take", "more", "give", "end")], [1, 1, 1, 1])
        self.near(millpond.profile.last.kept, BLOCK)
        self.near(millpond.profile.last.peak, 4 * BLOCK)

    def test_small_objects_are_counted_exactly_from_before_too(self):
        floats = [float(i) for i in range(20000)]

        @profiled
        def work(numbers):
            numbers.clear()  # old
            new = [float(i) for i in range(10000)]  # new
            del new  # gone

        work(floats)
        seen = rows()
        size = (sys.getsizeof(1.0) + 15) // 16 * 16
        self.near(seen["old"].change, -20000 * (size + 8), 20000)
        self.near(seen["new"].change, 10000 * (size + 8), 12000)
        self.near(seen["gone"].change, -10000 * (size + 8), 12000)
        self.assertGreater(seen["new"].blocks, 10000 - 200)

    def test_a_peak_inside_a_call_belongs_to_the_line_that_calls(self):
        def inner():
            return len(bytearray(BLOCK))

        @profiled
        def work():
            before = 1  # before
            inner()  # call
            return before  # after

        work()
        seen = rows()
        self.near(seen["call"].peak - seen["call"].before, BLOCK)
        self.near(seen["call"].change, 0)
        self.near(seen["after"].peak - seen["after"].before, 0)

    def test_a_loop_counts_each_time_and_counting_itself_is_not_counted(self):
        @profiled
        def work():
            flag = False
            for _ in range(5000):  # head
                flag = not flag  # body
            return flag

        work()
        seen = rows()
        self.assertEqual((seen["head"].hits, seen["body"].hits), (5001, 5000))
        self.assertEqual((seen["body"].blocks, seen["body"].allocated, seen["body"].change), (0, 0, 0))

        # The interpreter makes an object of a line's number when that is above 256, in order to tell it.
        names = {}
        exec(compile("\n" * 2000 + "def work():\n    flag = False\n    for _ in range(500):\n        flag = not flag\n", "far.py", "exec"), names)
        profiled(names["work"])()
        body = millpond.profile.last.functions[0].lines[3]
        self.assertEqual((body.number, body.hits, body.blocks, body.allocated, body.freed, body.change), (2004, 500, 0, 0, 0, 0))

    def test_recursion_and_nested_profiles_print_once_and_each_function(self):
        out = io.StringIO()

        def inner(count):
            return bytearray(count)  # inner

        inner = millpond.profile(inner, stream=out)

        @functools.partial(millpond.profile, stream=out)
        def down(depth):
            if depth:  # test
                return down(depth - 1)  # again
            return inner(BLOCK)  # bottom

        down(3)
        text = out.getvalue()
        self.assertEqual(text.count("allocated in"), 1)
        self.assertEqual((text.count("down (") , text.count("inner (")), (1, 1))
        self.assertEqual([rows("down")[mark].hits for mark in ("test", "again", "bottom")], [4, 3, 1])
        self.near(rows("inner")["inner"].change, BLOCK)
        self.near(rows("down")["bottom"].change, BLOCK)

    def test_an_exception_ends_its_lines_and_goes_on(self):
        @profiled
        def work(kept):
            try:
                fail(kept)  # call
            except ValueError:
                kept.append(bytearray(BLOCK))  # caught

        @profiled
        def fail(kept):
            kept.append(bytearray(BLOCK))  # take
            raise ValueError  # raise

        kept = []
        work(kept)
        self.near(rows("fail")["take"].change, BLOCK)
        self.near(rows("fail")["raise"].change, 0)
        self.near(rows("work")["call"].change, BLOCK)
        self.near(rows("work")["caught"].change, BLOCK)
        with self.assertRaises(ValueError):
            fail(kept)
        self.near(rows("fail")["take"].change, BLOCK)
        self.near(millpond.profile.last.kept, BLOCK)

    def test_generators_count_only_while_they_run(self):
        @profiled
        def numbers(kept):
            for i in range(3):
                kept.append(bytearray(BLOCK))  # take
                got = yield i  # yield
                kept.append(got)

        def consume(generator, mine):
            out = []
            for i in generator:
                mine.append(bytearray(BLOCK))
                out.append(i)
            return out

        kept, mine = [], []
        self.assertEqual(consume(numbers(kept), mine), [0, 1, 2])
        self.near(rows()["take"].change, 3 * BLOCK)
        self.assertEqual(rows()["yield"].hits, 3)
        self.near(rows()["yield"].change, 0)  # what the consumer keeps meanwhile is not the generator's
        stopped = numbers([])
        next(stopped)
        stopped.close()
        self.near(rows()["take"].change, BLOCK)
        thrown = numbers([])
        next(thrown)
        with self.assertRaises(KeyError):
            thrown.throw(KeyError())
        sent = numbers(kept)
        next(sent)
        self.assertEqual(sent.send("x"), 1)
        self.assertIn("x", kept)
        sent.close()

    def test_a_generator_may_end_in_another_thread(self):
        @profiled
        def numbers():
            held = bytearray(BLOCK)  # take
            yield 1
            del held

        generator = numbers()
        next(generator)
        millpond.profile.last = None
        thread = threading.Thread(target=lambda: list(generator))
        thread.start()
        thread.join()
        self.near(rows()["take"].change, BLOCK)

        @profiled
        def after():
            return bytearray(BLOCK)  # after

        after()
        self.near(rows()["after"].change, BLOCK)

    def test_coroutines_that_run_at_once_keep_their_lines_apart(self):
        @profiled
        async def work(kept, blocks):
            for _ in range(blocks):
                kept.append(bytearray(BLOCK))  # take
                await asyncio.sleep(0)  # wait

        @profiled
        async def items():
            for i in range(2):
                held = bytearray(BLOCK)  # made
                yield i
                del held

        async def main():
            await asyncio.gather(work([], 2), work([], 3))
            return [i async for i in items()]

        kept = []

        async def first():
            await asyncio.gather(work(kept, 2), work(kept, 3))

        asyncio.run(first())
        self.assertEqual(rows()["take"].hits, 5)
        self.near(rows()["take"].change, 5 * BLOCK)
        self.near(rows()["wait"].change, 0, 60000)
        self.assertEqual(asyncio.run(main()), [0, 1])
        self.assertEqual(rows("items")["made"].hits, 2)

    def test_threads_have_tables_of_their_own(self):
        results = {}

        @profiled
        def work(blocks, kept):
            for _ in range(blocks):
                kept.append(bytearray(BLOCK))  # take

        def run(blocks):
            kept = []
            work(blocks, kept)

        streams = {}

        def separate(blocks):
            streams[blocks] = io.StringIO()
            function = millpond.profile(lambda: [bytearray(BLOCK) for _ in range(blocks)], stream=streams[blocks])
            results[blocks] = len(function())

        threads = [threading.Thread(target=run, args=(n,)) for n in (1, 2)] + [threading.Thread(target=separate, args=(n,)) for n in (3, 4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, {3: 3, 4: 4})
        self.assertIn("12.0 MiB allocated", streams[3].getvalue())
        self.assertIn("16.0 MiB allocated", streams[4].getvalue())

    def test_methods_decorated_functions_and_what_is_no_function(self):
        class Thing:
            @millpond.profile(stream=False)
            def method(self):
                return bytearray(BLOCK)  # method

            @millpond.profile(stream=False)
            @staticmethod
            def static():
                return bytearray(BLOCK)  # static

            @classmethod
            @millpond.profile(stream=False)
            def of_class(cls):
                return bytearray(BLOCK)  # class

        Thing().method()
        self.near(rows()["method"].change, BLOCK)
        Thing.static()
        self.near(rows()["static"].change, BLOCK)
        self.assertEqual(len(Thing.of_class()), BLOCK)
        self.near(rows()["class"].change, BLOCK)

        @profiled
        @functools.lru_cache(maxsize=None)
        def cached(size):
            return bytearray(size)  # cached

        cached(BLOCK)
        self.near(rows()["cached"].change, BLOCK)
        self.assertEqual(cached.__name__, "cached")
        with self.assertRaises(TypeError):
            millpond.profile(len)
        with self.assertRaises(TypeError):
            millpond.profile(3)

    def test_a_trace_function_of_the_program_is_left_alone(self):
        seen = []

        def tracer(frame, event, value):
            seen.append(event)
            return tracer

        @profiled
        def work():
            return bytearray(BLOCK)  # take

        sys.settrace(tracer)
        try:
            work()
            self.assertIs(sys.gettrace(), tracer)
        finally:
            sys.settrace(None)
        self.assertIn("line", seen)
        self.near(millpond.profile.last.kept, BLOCK)
        if sys.version_info < (3, 12):
            self.assertIn("a trace function is in use (Profile.test_a_trace_function", "\n".join(millpond.profile.last.remarks))
        else:
            self.near(rows()["take"].change, BLOCK)

        @profiled
        def sets():
            sys.settrace(tracer)
            return 1

        sets()
        self.assertIs(sys.gettrace(), tracer)
        sys.settrace(None)
        work()
        self.near(rows()["take"].change, BLOCK)
        self.assertIsNone(sys.gettrace())

    def test_a_function_that_is_defined_again_is_another_one(self):
        kept = []
        for times in (1, 2):
            names = {}
            exec("def work(kept):\n    kept.append(bytearray(%d))\n" % BLOCK, names)
            work = profiled(names["work"])
            for _ in range(times):
                work(kept)
                self.near(millpond.profile.last.functions[0].lines[1].change, BLOCK)

    def test_under_tracemalloc_the_same_is_counted(self):
        @profiled
        def work():
            kept = [float(i) for i in range(10000)]  # take
            return kept

        tracemalloc.start()
        try:
            work()
        finally:
            tracemalloc.stop()
        self.assertGreater(rows()["take"].change, 10000 * 24)

    def test_the_table_as_text_and_as_html(self):
        out = io.StringIO()

        @millpond.profile(stream=out)
        def work():
            return bytearray(BLOCK)  # <b>take</b>

        work()
        text = out.getvalue()
        self.assertRegex(text, r"line +hits +before +after +change +peak +allocated +blocks")
        self.assertRegex(text, r" 1 .*\+4\.00 MiB .* return bytearray\(BLOCK\)  # <b>take</b>")
        self.assertRegex(text, r"4\.00 MiB allocated in \d blocks, .* kept, .* Resident memory: .* before, .* after")
        html = millpond.profile.last._repr_html_()
        self.assertIn("&lt;b&gt;take&lt;/b&gt;", html)
        self.assertNotIn("<b>take", html)
        self.assertNotIn("<script", html)

    def test_a_closed_stream_does_not_reach_the_program(self):
        out = io.StringIO()
        function = millpond.profile(lambda: 7, stream=out)
        out.close()
        self.assertEqual(function(), 7)

    def test_allocators_and_tables_are_as_before_when_it_is_over(self):
        code = r"""
import ctypes, sys
sys.path.insert(0, %r)
class Allocator(ctypes.Structure):
    _fields_ = [(n, ctypes.c_void_p) for n in ("context", "malloc", "calloc", "realloc", "free")]
class Arena(ctypes.Structure):
    _fields_ = [(n, ctypes.c_void_p) for n in ("context", "alloc", "free")]
def state():
    out = []
    for domain in range(3):
        a = Allocator(); ctypes.pythonapi.PyMem_GetAllocator(domain, ctypes.byref(a)); out.append(bytes(a))
    a = Arena(); ctypes.pythonapi.PyObject_GetArenaAllocator(ctypes.byref(a)); out.append(bytes(a))
    return out
before = state()
import millpond, os, time
from millpond import _lines
work = millpond.profile(lambda: time.sleep(0.01), stream=False)
assert state() != before
_lines._kShort = 0.0
fds = os.listdir("/proc/self/fd")
work()
assert state() == before, "allocators"
assert os.listdir("/proc/self/fd") == fds
work()
print("as before")
""" % os.path.join(SOURCE, "python")
        done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertIn("as before", done.stdout)
        self.assertEqual(done.returncode, 0, done.stdout)

    @unittest.skipIf(sys.version_info < (3, 12), "sys.monitoring came with Python 3.12")
    def test_tool_id_and_events_of_monitoring_are_given_back_after_each_outermost_call_and_others_keep_theirs(self):
        monitoring = sys.monitoring
        ids = range(6)
        before = [monitoring.get_tool(i) for i in ids]

        @profiled
        def work(inner=None):
            held = [monitoring.get_tool(i) for i in ids].count("millpond")
            block = bytearray(BLOCK)  # take
            return held, inner() if inner else len(block)

        @profiled
        def generator():
            yield bytearray(BLOCK)  # first
            yield bytearray(BLOCK)  # second

        for turn in range(3):
            self.assertEqual(work(lambda: work())[0], 1)
            self.near(rows("work")["take"].allocated, 2 * BLOCK)
            self.assertEqual([monitoring.get_tool(i) for i in ids], before)
            pieces = generator()
            next(pieces)
            self.assertEqual([monitoring.get_tool(i) for i in ids].count("millpond"), 1)
            self.assertEqual(len(list(pieces)), 1)
            self.assertEqual([monitoring.get_tool(i) for i in ids], before)
            self.near(rows("generator")["second"].allocated, BLOCK)
            # Another tool may have what was ours before; its events and callbacks are its own.
            monitoring.use_tool_id(4, "other")
            self.assertEqual([monitoring.get_local_events(4, function.__wrapped__.__code__) for function in (work, generator)], [0, 0])
            seen = []
            monitoring.register_callback(4, monitoring.events.PY_START, lambda code, offset: seen.append(code.co_name))
            monitoring.set_events(4, monitoring.events.PY_START)
            work()
            self.near(rows("work")["take"].allocated, BLOCK)
            self.assertEqual((monitoring.get_tool(4), monitoring.get_events(4)), ("other", monitoring.events.PY_START))
            monitoring.set_events(4, 0)
            monitoring.register_callback(4, monitoring.events.PY_START, None)
            monitoring.free_tool_id(4)
            self.assertIn("work", seen)

    def test_a_forked_child_and_the_end_of_the_interpreter_are_as_usual(self):
        code = r"""
import os, sys
sys.path.insert(0, %r)
import millpond
@millpond.profile
def work():
    child = os.fork()
    if not child:
        keep = bytearray(1 << 20)
        os._exit(3)
    return os.waitpid(child, 0)[1] >> 8
print("child", work())
""" % os.path.join(SOURCE, "python")
        done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.stdout, done.returncode), ("child 3\n", 0), done.stderr)
        self.assertEqual(done.stderr.count("allocated in"), 1)


if __name__ == "__main__":
    unittest.main()
