"""What holds: templates that put ITEM somewhere each time they run. The line that puts is marked #@blame."""
import dataclasses

ANY = None
HASHABLE = ("bytes", "str")
BYTES = ("bytes",)
NDARRAY = ("ndarray",)


@dataclasses.dataclass
class Holder:
    kind: str
    each: str
    begin: str = ""
    top: str = ""
    names: tuple = ("items",)  # holes whose names are a right answer to "who holds it"
    words: tuple = ()  # other words that are
    imports: tuple = ()
    takes: object = ANY
    cause: str = ""
    weight: float = 1.0
    many: bool = True  # may be run several times a call
    native: bool = False  # no Python object holds it
    space: str = "host"
    largest: float = 1e9  # bytes an item may have
    total: float = 3e9  # bytes it may keep in all
    end: str = ""
    own: object = None  # makes what it keeps itself: a function of rng and bytes that gives values for the template, the bytes of a call (None: not known by construction), and what it is
    only: str = ""  # the rhythm or the environment it needs
    seconds: float = 0.0  # of a call


def _list(each, weight=0.5):
    return Holder("list", each, "§items = []", cause="C14", weight=weight)


HOLDERS = [
    _list("§items.append(ITEM)  #@blame", 1.5), _list("§items += [ITEM]  #@blame"), _list("§items.extend([ITEM])  #@blame", 0.3), _list("§items.insert(0, ITEM)  #@blame", 0.3),
    _list("§items = §items + [ITEM]  #@blame", 0.2), _list("§items.append((«i», ITEM))  #@blame"), _list("§items.append({\"$key\": ITEM, \"$other\": «i»})  #@blame"),
    Holder("list", "$do_note(§items, ITEM)", "§items = []", "def $do_note($where, $what):\n    $where.append($what)  #@blame\n    return len($where)", names=("items", "where"), cause="C14"),
    Holder("list", "§groups[«i» % 3].append(ITEM)  #@blame", "§groups = [[], [], []]", names=("groups",), cause="C14", weight=0.5),
    Holder("dict", "§items[«i»] = ITEM  #@blame", "§items = {}", cause="C14"), Holder("dict", "§items.setdefault(«i», ITEM)  #@blame", "§items = {}", cause="C14", weight=0.4),
    Holder("dict", "§items.update({\"$key%d\" % («i»): ITEM})  #@blame", "§items = {}", cause="C14", weight=0.4),
    Holder("dict", "§items[«i» % 5].append(ITEM)  #@blame", "§items = collections.defaultdict(list)", imports=("import collections",), cause="C14", weight=0.6),
    Holder("dict", "$do_file(«i», ITEM)", "", "$BOOK = {}\n\n\ndef $do_file($key, $value):\n    if $key not in $BOOK:\n        $BOOK[$key] = $value  #@blame\n    return $BOOK[$key]", names=("BOOK",), cause="C14", weight=0.7),
    Holder("set", "§items.add(ITEM)  #@blame", "§items = set()", takes=HASHABLE, cause="C14"),
    Holder("deque", "§items.append(ITEM)  #@blame", "§items = collections.deque()", imports=("import collections",), cause="C14"),
    Holder("deque", "§items.appendleft(ITEM)  #@blame", "§items = collections.deque()", imports=("import collections",), cause="C14", weight=0.4),
    Holder("heap", "heapq.heappush(§items, («i», id(§items), ITEM))  #@blame", "§items = []", imports=("import heapq",), cause="C14", weight=0.6),
    Holder("queue", "§items.put(ITEM)  #@blame", "§items = queue.Queue()", imports=("import queue",)), Holder("queue", "§items.put(ITEM)  #@blame", "§items = queue.SimpleQueue()", imports=("import queue",), weight=0.5),
    Holder("attribute", "§thing.$do_add(ITEM)", "§thing = $Thing()", "class $Thing:\n    def __init__(self):\n        self.$items = []\n        self.$count = 0\n\n    def $do_add(self, $what):\n        self.$items.append($what)  #@blame\n        self.$count += 1",
           names=("items",), cause="C14", weight=1.5),
    Holder("attribute", "§thing.$do_add(«i», ITEM)", "§thing = $Thing()", "class $Thing:\n    def __init__(self):\n        self.$items = {}\n\n    def $do_add(self, $key, $what):\n        if $what is None:\n            return None\n        self.$items[$key] = $what  #@blame\n        return $what",
           names=("items",), cause="C14", weight=1.0),
    Holder("attribute", "setattr(§thing, \"$key%d\" % («i»), ITEM)  #@blame", "§thing = $Thing()", "class $Thing:\n    pass", names=("thing", "Thing"), weight=0.5),
    Holder("class attribute", "$Thing.$items.append(ITEM)  #@blame", "", "class $Thing:\n    $items = []\n    $limit = 3", names=("items",), cause="C14"),
    Holder("class attribute", "§last = $Thing(ITEM)", "§last = None", "class $Thing:\n    $items = []\n\n    def __init__(self, $what):\n        self.$what = $what\n        $Thing.$items.append(self)  #@blame\n\n    def $do_size(self):\n        return len(self.$what)",
           names=("items",), cause="C14"),
    Holder("global", "$do_note(ITEM)", "", "$ITEMS = []\n\n\ndef $do_note($what):\n    $ITEMS.append($what)  #@blame", names=("ITEMS",), cause="C14", weight=1.5),
    Holder("global", "$do_note(ITEM)", "", "$ITEMS = ()\n\n\ndef $do_note($what):\n    global $ITEMS\n    $ITEMS = ($what, $ITEMS)  #@blame", names=("ITEMS",), weight=0.5),
    Holder("closure", "§note(ITEM)", "§note = $do_open()", "def $do_open():\n    $items = []\n    $total = 0\n\n    def $do_note($what):\n        nonlocal $total\n        $items.append($what)  #@blame\n        $total += 1\n        return $total\n\n    return $do_note", names=("items",)),
    Holder("default argument", "$do_note(ITEM)", "", "def $do_note($what, $items=[]):\n    $items.append($what)  #@blame\n    return len($items)", names=("items",)),
    Holder("default argument", "$do_note(«i», ITEM)", "", "def $do_note($key, $what, $items={}):\n    $items[$key] = $what  #@blame\n    return $what", names=("items",), weight=0.5),
    Holder("function attribute", "$do_note(ITEM)", "", "def $do_note($what):\n    $do_note.$items.append($what)  #@blame\n\n\n$do_note.$items = []", names=("items",), weight=0.6),
    Holder("generator frame", "§source.send(ITEM)", "§source = $do_collect()\nnext(§source)", "def $do_collect():\n    $items = []\n    while True:\n        $what = yield len($items)\n        $items.append($what)  #@blame", names=("items",)),
    Holder("cache function", "$do_load(«i»)", "", "@functools.lru_cache(maxsize=None)  #@blame\ndef $do_load($key):  #@blame\n    return ITEM", names=("do_load",), words=("lru_cache", "cache"), imports=("import functools",), weight=1.5),
    Holder("cache function", "$do_load(«i»)", "", "@functools.cache  #@blame\ndef $do_load($key):  #@blame\n    return ITEM", names=("do_load",), words=("lru_cache", "cache"), imports=("import functools",), weight=0.5),
    Holder("thread local", "§local.$items.append(ITEM)  #@blame", "§local = threading.local()\n§local.$items = []", names=("items", "local"), imports=("import threading",)),
    Holder("linked nodes", "§head = $Node(ITEM, §head)  #@blame", "§head = None", "class $Node:\n    def __init__(self, $what, $before):\n        self.$what = $what\n        self.$before = $before", names=("head", "before", "Node")),
    Holder("linked nodes", "§chain.$do_push(ITEM)", "§chain = $Chain()",
           "class $Node:\n    __slots__ = (\"$what\", \"$after\")\n\n    def __init__(self, $what):\n        self.$what = $what\n        self.$after = None\n\n\nclass $Chain:\n    def __init__(self):\n        self.$first = self.$last = None\n\n    def $do_push(self, $what):\n"
           "        $node = $Node($what)\n        if self.$last is None:\n            self.$first = self.$last = $node\n        else:\n            self.$last.$after = $node  #@blame\n            self.$last = $node  #@blame", names=("chain", "first", "after", "last", "Node", "Chain")),
    Holder("registry", "§last = $Thing(\"$key%d\" % («i»), ITEM)", "§last = None", "class $Thing:\n    $weak = weakref.WeakSet()\n    $strong = {}\n\n    def __init__(self, $name, $what):\n        self.$name = $name\n        self.$what = $what\n        $Thing.$weak.add(self)\n        $Thing.$strong[$name] = self  #@blame",
           names=("strong",), imports=("import weakref",)),
    Holder("object array", "if §used == len(§items):\n    §items = np.concatenate([§items, np.empty(len(§items), dtype=object)])\n§items[§used] = ITEM  #@blame\n§used += 1", "§items = np.empty(8, dtype=object)\n§used = 0", imports=("import numpy as np",), takes=("ndarray", "bytes", "str", "bytearray")),
    Holder("log handlers", "logging.getLogger(\"$channel\").addHandler($Thing(ITEM))  #@blame", "", "class $Thing(logging.Handler):\n    def __init__(self, $what):\n        super().__init__()\n        self.$what = $what\n\n    def emit(self, record):\n        return None",
           names=("channel", "Thing"), words=("handlers",), imports=("import logging",)),
    Holder("exit handlers", "atexit.register($do_bye, ITEM)  #@blame", "", "def $do_bye($what):\n    return len($what)", names=("do_bye",), words=("atexit",), imports=("import atexit",)),
    Holder("warnings registry", "warnings.warn(ITEM)  #@blame", "warnings.showwarning = $do_hush", "def $do_hush(*$what, **$more):\n    return None", names=(), words=("warning", "__warningregistry__"), imports=("import warnings",), takes=("str",)),
    Holder("exceptions", "try:\n    $do_try(«i»)\nexcept ValueError as error:\n    §items.append(error)  #@blame", "§items = []", "def $do_try($key):\n    $what = ITEM\n    raise ValueError(\"no row %d in %d\" % ($key, len($what)))", cause="C40", weight=1.5),
    Holder("exit stack", "§stack.callback($do_bye, ITEM)  #@blame", "§stack = contextlib.ExitStack()", "def $do_bye($what):\n    return len($what)", names=("stack",), words=("ExitStack",), imports=("import contextlib",), weight=0.7),
    Holder("finalizers", "weakref.finalize(§owner, $do_bye, ITEM)  #@blame", "§owner = $Thing()", "class $Thing:\n    pass\n\n\ndef $do_bye($what):\n    return len($what)", names=("do_bye", "owner"), words=("finalize",), imports=("import weakref",), weight=0.6),
    Holder("mock calls", "§probe(ITEM)  #@blame", "§probe = unittest.mock.Mock()", names=("probe",), words=("mock", "call"), imports=("import unittest.mock",), weight=0.6),
    Holder("pickler memo", "§writer.dump(ITEM)  #@blame", "§writer = pickle.Pickler(open(os.devnull, \"wb\"))", names=("writer",), words=("Pickler",), imports=("import os", "import pickle"), takes=("bytes", "str"), weight=0.6),
    Holder("log records", "§log.info(\"%s\", ITEM)  #@blame", "§log = logging.getLogger(\"$channel\")\n§log.propagate = False\n§log.setLevel(logging.INFO)\n§log.addHandler(logging.handlers.MemoryHandler(10**9, flushLevel=99))", names=("log", "channel"),
           words=("MemoryHandler", "buffer"), imports=("import logging", "import logging.handlers"), takes=("str", "bytes"), weight=0.6),
    Holder("futures", "§pending.append(§pool.submit($do_pass, ITEM))  #@blame", "§pending = []\n§pool = concurrent.futures.ThreadPoolExecutor(2)", "def $do_pass($what):\n    return $what", names=("pending",), imports=("import concurrent.futures",), cause="C14", weight=0.7,
           end="§pool.shutdown()"),
    Holder("growing buffer", "§items += ITEM  #@blame #@born", "§items = bytearray()", takes=("bytes",), weight=0.8, total=4e8), Holder("growing buffer", "§items.write(ITEM)  #@blame #@born", "§items = io.BytesIO()", imports=("import io",), takes=("bytes",), weight=0.8, total=4e8),
    Holder("growing buffer", "§items = np.concatenate([§items, ITEM])  #@blame #@born", "§items = np.zeros(0)", imports=("import numpy as np",), takes=NDARRAY, total=3e8),
    Holder("memory database", "§base.execute(\"insert into $rows values (?)\", (ITEM,))  #@blame #@born", "§base = sqlite3.connect(\":memory:\", check_same_thread=False)\n§base.execute(\"create table $rows ($what blob)\")", names=("base",), words=("sqlite", "native"),
           imports=("import sqlite3",), takes=("bytes",), native=True, largest=5e7, total=1e9),
    Holder("native block", "$LIBC.strdup(ITEM)  #@blame #@born", "", "$LIBC = ctypes.CDLL(None)\n$LIBC.strdup.restype = ctypes.c_void_p\n$LIBC.strdup.argtypes = [ctypes.c_char_p]", names=(), words=("native",), imports=("import ctypes",), takes=("nonzero bytes",), native=True, weight=1.5),
    Holder("native block", "$do_take(ITEM)", "", "$LIBC = ctypes.CDLL(None)\n$LIBC.malloc.restype = ctypes.c_void_p\n$LIBC.malloc.argtypes = [ctypes.c_size_t]\n\n\ndef $do_take($what):\n    $place = $LIBC.malloc(len($what))  #@blame #@born\n    ctypes.memmove($place, $what, len($what))\n    return len($what)",
           names=(), words=("native",), imports=("import ctypes",), takes=("bytes",), native=True),
    Holder("mapping", "§area = mmap.mmap(-1, «n»)  #@born\n§area.write(ITEM)\n§items.append(§area)  #@blame", "§items = []", names=("items",), imports=("import mmap",), takes=("mapped bytes",), weight=1.0, space="host or shared"),
    Holder("shared memory", "§area = shared_memory.SharedMemory(create=True, size=«n»)  #@born\n§area.buf[:«n»] = ITEM\n§area.unlink()\n§items.append(§area)  #@blame", "§items = []", names=("items",), imports=("from multiprocessing import shared_memory",),
           takes=("mapped bytes",), weight=1.0, space="shared"),
    Holder("memory file", "§area = tempfile.TemporaryFile(dir=\"/dev/shm\")\n§area.write(ITEM)  #@born\n§area.flush()  #@born\n§items.append(§area)  #@blame", "§items = []", names=("items",), imports=("import tempfile",), takes=("mapped bytes",), weight=0.7, space="shared", total=5e8),
    Holder("memory file", "§area.write(ITEM)  #@blame #@born\n§area.flush()", "§area = tempfile.TemporaryFile(dir=\"/dev/shm\")", names=("area",), words=("/dev/shm",), imports=("import tempfile",), takes=("bytes",), weight=0.5, space="shared", total=5e8, native=True),
    Holder("cycles with gc off", "$do_tie(ITEM)", "gc.disable()  #@blame", "class $Node:\n    def __init__(self, $what):\n        self.$what = $what  \n        self.$me = self  #@blame\n\n\ndef $do_tie($what):\n    $node = $Node($what)  #@blame\n    return len($node.$what)", names=("Node",), words=("garbage", "gc", "cycle"),
           imports=("import gc",), cause="C10"),
]

# Holders with a bound: what is kept stops at «cap» items. `full` says how the bound works.
BOUNDED = [
    Holder("deque with a bound", "§items.append(ITEM)  #@hold", "§items = collections.deque(maxlen=«cap»)", imports=("import collections",), weight=2),
    Holder("cache function with a bound", "$do_load(«i»)  #@hold", "", "@functools.lru_cache(maxsize=«cap»)\ndef $do_load($key):\n    return ITEM", names=("do_load",), imports=("import functools",), weight=2),
    Holder("list cut to a bound", "§items.append(ITEM)  #@hold\nif len(§items) > «cap»:\n    §items.pop(0)", "§items = []"), Holder("list cut to a bound", "§items.append(ITEM)  #@hold\ndel §items[:-«cap»]", "§items = []"),
    Holder("ring", "§thing.$do_add(ITEM)", "§thing = $Thing(«cap»)",
           "class $Thing:\n    def __init__(self, $room):\n        self.$room = $room\n        self.$items = []\n        self.$at = 0\n\n    def $do_add(self, $what):\n        if len(self.$items) < self.$room:\n            self.$items.append($what)  #@hold\n        else:\n            self.$items[self.$at] = $what\n"
           "        self.$at = (self.$at + 1) % self.$room"),
    Holder("dict of few keys", "§items[«i» % «cap»] = ITEM  #@hold", "§items = {}"), Holder("dict of few keys", "if («i» % «cap») not in §items:\n    §items[«i» % «cap»] = ITEM  #@hold", "§items = {}"),
    Holder("ordered cache", "§items[«i»] = ITEM  #@hold\nif len(§items) > «cap»:\n    §items.popitem(last=False)", "§items = collections.OrderedDict()", imports=("import collections",)),
    Holder("queue with a bound", "if §items.full():\n    §items.get()\n§items.put(ITEM)  #@hold", "§items = queue.Queue(maxsize=«cap»)", imports=("import queue",)),
    Holder("object array", "§items[«i» % «cap»] = ITEM  #@hold", "§items = np.empty(«cap», dtype=object)", imports=("import numpy as np",), takes=("ndarray", "bytes", "str")),
    Holder("table filled row by row", "§items[«i» % «cap», :] = «i» * 0.5  #@hold", "§items = np.empty((«cap», «width»))", imports=("import numpy as np",), takes=("row",)),
    Holder("pool of buffers", "$do_use(§items, §spare, ITEM)", "§items = []\n§spare = []", "def $do_use($out, $back, $what):\n    if len($out) < «cap»:\n        $out.append($what)  #@hold\n    else:\n        $back.append($out.pop(0))\n        $out.append($back.pop() if len($back) > 1 else $what)"),
]
