"""A Python program of known allocations: python_patient.py SCENARIO. Says what it made as JSON on its last line, waits
for the end of its input, and ends. Blocks are told apart by their size; the line of each is the one marked `# <name>`."""
import ctypes
import gc
import json
import sys
import time
import threading

MIB = 1 << 20
KEEP = []
probe = ctypes.PyDLL(None)  # holds the GIL


def watch():
    if hasattr(probe, "millpond_probe_python"):
        return probe.millpond_probe_python()
    return None


def outer(n):
    return middle(n)  # outer


def middle(n):
    x = 1
    y = x + 1
    return inner(n)  # middle


def inner(n):
    a = 1

    b = bytearray(n)  # inner
    return b


def generator(n):
    for i in range(3):
        value = (
            i,
            bytearray(n + i),  # generator
        )
        yield value


class Keeper:
    kept = None

    def method(self, n):
        self.kept = bytearray(n)  # method


async def coroutine(n):
    return bytearray(n)  # coroutine


def drive(routine):
    try:
        routine.send(None)
    except StopIteration as stop:
        return stop.value


def recurse(depth, n):
    if depth == 0:
        return bytearray(n)  # recurse
    return recurse(depth - 1, n)


def failing(n):
    try:
        raise ValueError
    except ValueError:
        return bytearray(n)  # failing


def where():
    KEEP.append(outer(3 * MIB))
    KEEP.append(list(generator(4 * MIB)))
    thread = threading.Thread(target=lambda: KEEP.append(outer(5 * MIB)))
    thread.start()
    thread.join()
    KEEP.append([bytearray(6 * MIB) for _ in range(1)])  # comprehension
    keeper = Keeper()
    keeper.method(7 * MIB)
    KEEP.append(keeper)
    KEEP.append(drive(coroutine(8 * MIB)))
    KEEP.append(recurse(150, 9 * MIB))
    KEEP.append(failing(10 * MIB))
    scope = {}
    source = "\n" * 700 + "def größe(n):\n" + " x = 1\n" * 300 + " return bytearray(n)\n"
    exec(compile(source, "/tmp/módulo_日本_😀.py", "exec"), scope)
    KEEP.append(scope["größe"](11 * MIB))
    return {}


def small():
    before = [object() for _ in range(1000)]
    tuples = [(i, i, i) for i in range(400000)]  # tuples
    KEEP.append(tuples)
    del before
    return {"bytes": sys.getsizeof(tuples[0]) * len(tuples), "blocks": len(tuples)}


def floats():
    """Each asks for 24 bytes and takes 32."""
    KEEP.append([i * 0.5 for i in range(1500000)])  # floats
    return {"bytes": 32 * 1500000, "blocks": 1500000}


def calms():
    """Much is allocated and freed, as while libraries are imported; then little, which is kept."""
    end = time.monotonic() + 1
    while time.monotonic() < end:
        bytearray(100000)
    for _ in range(80):
        KEEP.append(bytearray(60000))  # calm
        time.sleep(0.02)
    return {}


def freed():
    small()
    KEEP.clear()
    gc.collect()
    return {}


def lives():
    """Sampled small objects through all that can happen to them: they grow, shrink, are freed, and a forked child frees what it inherited."""
    import os

    def some(count):
        rows = [[i] for i in range(count)]
        for row in rows:
            row.extend(range(40))  # beyond what pymalloc calls small, and back again
            del row[3:]
        return rows + [{i: (i,)} for i in range(count)] + [b"%d" % i * 20 for i in range(count)]

    some(1000)
    gc.collect()
    before = sys.getallocatedblocks()
    kept = some(20000)
    right = all(row == [i, 0, 1] for i, row in enumerate(kept[:20000])) and kept[-1] == b"19999" * 20
    codes = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            kept.clear()
            os._exit(len(some(5000)) != 15000)
        codes.append(os.waitpid(child, 0)[1])
    kept.clear()
    del kept
    gc.collect()
    return {"right": right, "children": codes, "blocks": sys.getallocatedblocks() - before}


def array():
    import numpy

    KEEP.append(numpy.ones(3 * MIB // 8 + 1))  # array
    return {}


def stress():
    """Frames of all kinds come and go in eight threads, while snapshots are taken in a ninth."""
    stop = threading.Event()
    counts = []

    def work(seed):
        n = 0
        while not stop.is_set():
            n += 1
            x = [tuple(range(i % 7)) for i in range(50)]
            sum(len(p[1]) for p in generator(200))
            drive(coroutine(500))
            recurse(30, 100)
            failing(300)
            {str(i): [i] for i in range(40)}
            sorted(x, key=lambda t: len(t))
            exec("y = [z for z in range(20)]")
        counts.append(n)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    mark = getattr(probe, "millpond_probe_mark", None)
    for i in range(10):
        if mark:
            mark(b"timer", b"stress", ctypes.c_int64(i), 8)
        stop.wait(0.02)
    stop.set()
    for thread in threads:
        thread.join()
    return {"worked": len(counts)}


def family():
    """Children by fork and by exec, and threads that still run when the interpreter goes."""
    import multiprocessing
    import subprocess

    with multiprocessing.get_context("fork").Pool(2) as pool:
        total = sum(pool.map(len, [[1] * 10000] * 20))
    said = subprocess.run([sys.executable, "-c", "print(6 * 7)"], stdout=subprocess.PIPE).stdout.decode().strip()

    class Late:
        def __del__(self):
            [bytes(1000) for _ in range(1000)]

    KEEP.append(Late())

    def forever():
        while True:
            [bytes(100) for _ in range(100)]

    for _ in range(3):
        threading.Thread(target=forever, daemon=True).start()
    return {"total": total, "said": said}


old = [[i] for i in range(1000)]
state = watch()
result = globals()[sys.argv[1]]()
result["wrapped"] = state
del old
if "--plain" in sys.argv:
    del result["wrapped"]
print(json.dumps(result))
sys.stdout.flush()
sys.stdin.read()
