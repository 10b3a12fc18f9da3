"""The way to the probe: libmillpond_probe.so is loaded before Python (LD_PRELOAD), its functions are called by ctypes.
src/probe/shared.h declares them. Without it everything here does nothing, except that MILLPOND_AGENT_LOG names a file
for what would be said: one JSON object on each line."""

import _signal
import ctypes
import json
import os
import sys
import time

from . import once

BEGIN, END, PERIOD, SNAPSHOT = 1, 2, 4, 8
BATCH, EPOCH, MODEL, CALL, TRACE, COMPILE, LINE, FIT = range(8)  # places in `units`
APART = 2  # for pause
kUnits = 16

units = [0] * kUnits  # with the probe: its own counters in shared memory
counting = []  # functions that bring them up to date
frameworks = []  # notes of this kind, for children by fork
_native = None
_log = None


class _Step(ctypes.Structure):
    _fields_ = [("object", ctypes.c_uint64), ("type", ctypes.c_char * 56)]


class _Holder(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint64), ("blocks", ctypes.c_float), ("samples", ctypes.c_uint32), ("items", ctypes.c_uint32), ("how", ctypes.c_uint32),
                ("repeats", ctypes.c_uint32), ("depth", ctypes.c_uint32), ("alike", ctypes.c_uint32), ("whole", ctypes.c_uint32), ("births", ctypes.c_uint64 * 16), ("stacks", ctypes.c_uint32 * 6),
                ("stack_bytes", ctypes.c_uint64 * 6), ("steps", _Step * 20)]


class Walk(ctypes.Structure):
    """src/probe/shared.h"""

    _fields_ = [(name, ctypes.c_uint64) for name in ("done", "now_ms", "first_ms", "objects", "ns", "alive", "reached", "native", "garbage", "unclaimed", "lately")] + [
        ("holders", ctypes.c_uint32), ("full", ctypes.c_uint32), ("holder", _Holder * 48)]


class _Native:
    """The probe's functions; None for those that this probe does not have."""

    def __init__(self, path=None):
        library = ctypes.CDLL(path)
        self.mark = library.millpond_probe_mark
        self.mark.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_uint32]
        self.mark.restype = None
        self.note = library.millpond_probe_note
        self.note.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
        self.pause = library.millpond_probe_pause
        self.pause.argtypes = [ctypes.c_int]
        self.pause.restype = None
        self.trim = library.millpond_probe_trim
        self.free_bytes = library.millpond_probe_free_bytes
        self.free_bytes.restype = ctypes.c_uint64
        self.units_of = library.millpond_probe_units
        self.units_of.restype = ctypes.c_void_p
        holding_the_gil = ctypes.PyDLL(path)
        self.tick = holding_the_gil.millpond_probe_tick
        self.tick.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
        self.tick.restype = None
        self.locals_of = holding_the_gil.millpond_probe_locals
        self.locals_of.argtypes = [ctypes.py_object, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
        self.locals_of.restype = ctypes.py_object
        self.registered = holding_the_gil.millpond_probe_registered
        self.registered.argtypes, self.registered.restype = [ctypes.c_void_p, ctypes.c_int], ctypes.py_object
        self.prints = holding_the_gil.millpond_probe_prints
        self.prints.argtypes = [ctypes.c_void_p] * 4
        self.prints.restype = ctypes.c_void_p
        self.untraced = holding_the_gil.millpond_probe_untraced
        self.untraced.argtypes, self.untraced.restype = [ctypes.py_object], ctypes.py_object
        self.after = holding_the_gil.millpond_probe_after
        self.after.argtypes, self.after.restype = [ctypes.py_object, ctypes.py_object, ctypes.c_int], ctypes.py_object
        self.exceptions = holding_the_gil.millpond_probe_exceptions
        self.exceptions.argtypes = [ctypes.c_void_p] * 2
        self.walk = holding_the_gil.millpond_probe_walk
        self.walk.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_size_t] + [ctypes.c_void_p, ctypes.c_size_t] * 2 + [ctypes.c_size_t, ctypes.c_int]
        self.walk.restype = ctypes.POINTER(Walk)
        self.walked = library.millpond_probe_walked
        self.stack = library.millpond_probe_stack
        self.stack.argtypes = [ctypes.c_uint32, ctypes.c_char_p, ctypes.c_size_t]
        self.stack.restype = ctypes.c_size_t
        self.watching = library.millpond_probe_watching
        self.last_walk = self.device_walk = None
        self.cleaning = None
        self.asked = None  # what the probe has a pointer to must live
        holding_the_gil.millpond_probe_python()


def connect(library=None):
    """Finds the probe: in front of the program, or where it was loaded from. False: nobody listens."""
    global _native, _log
    log = os.environ.get("MILLPOND_AGENT_LOG")
    if log:
        _log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        _native = _Native(library)
        reconnect()
    except (AttributeError, OSError):
        _native = None
    return _native is not None or _log is not None


def reconnect():
    """Where the counters lie; in a child by fork they lie elsewhere."""
    global units
    at = _native.units_of() if _native is not None else None
    units = (ctypes.c_uint64 * kUnits).from_address(at) if at else [0] * kUnits


def watching():
    """Whether the probe watches this process: a child by fork may be none of those that are followed."""
    return _native is not None and _native.watching() != 0


def native():
    return _native is not None


def locals_of(frame, hop, offset, count):
    return _native.locals_of(frame, hop, offset, count)


def registered(table, count):
    return _native.registered(table, count)


class PrintSite(ctypes.Structure):
    """src/probe/shared.h"""

    _fields_ = [(name, ctypes.c_uint64) for name in ("code", "instruction", "hits", "skip", "due_ns")]


def prints(function, print_object=None, write_object=None, stream=None):
    """Has function(site, values, names) asked about printed lines; the table of sites, or None where that is not possible. function None: no more."""
    if _native is None:
        return None
    if function is None:
        _native.prints(None, None, None, None)
        return None
    _native.asked = (function, print_object, write_object, stream)
    at = _native.prints(*(None if thing is None else id(thing) for thing in _native.asked))
    return (PrintSite * 2048).from_address(at) if at else None


def exceptions(function, hook=None):
    """Has function(kind, value, traceback) called before `hook` (sys.excepthook) prints; it returns the traceback to print. False: not possible."""
    if _native is None:
        return False
    if function is None:
        return _native.exceptions(None, None) == 0
    _native.cleaning = (function, hook)
    return _native.exceptions(id(function), id(hook)) == 0


def untraced(function):
    """The same for the program's interpreter, unseen by the program's trace and profile functions."""
    return _native.untraced(function) if _native is not None else function


def after(original, then, method=False):
    """A function that calls original and then `then` with the same arguments, unseen by trace functions; None: not possible."""
    return _native.after(original, then, method) if _native is not None else None


def walk(roots, everything, hidden, later, owned, links, given, room, apart=False, shallow=False):
    """One walk from the objects in `roots` (src/probe/walk.h); owned, links: flat lists of pairs; given: blocks of a device, four numbers each. None: not possible now. apart: in a
    child; last_walk() has the result once walked() is 1, and device_walk() that of the given blocks. shallow: without what is in `later`."""
    pairs, linked, blocks = ((ctypes.c_uint64 * len(list_))(*list_) if list_ else None for list_ in (owned, links, given))
    everything = None if everything is None else id(everything)
    found = _native.walk(id(roots), everything, id(hidden), id(later), pairs, len(owned) // 2, linked, len(links) // 2, blocks, len(given) // 4, room, apart + 2 * shallow)
    _native.last_walk = found.contents if found else None
    _native.device_walk = found[1] if found and given else None
    return _native.last_walk if _native.last_walk is not None and (apart or _native.last_walk.done == 1) else None


def walked():
    """0: a child walks; 1: none does, or it is done; -1: it failed."""
    return _native.walked() if _native is not None else 1


def last_walk():
    return _native.last_walk


def device_walk():
    return _native.device_walk


def stack(number):
    """Python's frames of a stack of the probe, innermost first: [(file, line, function)]."""
    text = ctypes.create_string_buffer(16384)
    size = _native.stack(number, text, len(text))
    rows = [row.split("\t") for row in text.raw[:size].decode("utf-8", "replace").split("\n")]
    return [(row[0], int(row[1]), row[2]) for row in rows if len(row) == 3]


def settle():
    for up_to_date in counting:
        up_to_date()


def mark(kind, name="", index=0, flags=0):
    settle()
    if _native is not None:
        _native.mark(kind.encode("utf-8", "replace")[:15], name.encode("utf-8", "replace")[:200], index, flags)
    if _log is not None:
        _write({"mark": kind, "name": name, "index": index, "flags": flags, "t": round(time.monotonic(), 4), "units": list(units[:8])})


def note(values):
    """Says a thing; False when there is no room."""
    if values.get("note") == "framework" and values not in frameworks:
        frameworks.append(values)
    if _log is not None:
        _write(values)
    if _native is None:
        return True
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), default=str).encode("utf-8", "replace")
    return _native.note(text, len(text)) == 0


def _write(values):
    text = json.dumps(values, ensure_ascii=False, default=str) + "\n"
    os.write(_log, text.encode("utf-8", "replace"))


def pass_on():
    """First thing where an exception is swallowed: one that a signal's handler of the program raised in the middle of our work is the program's, and goes on its way."""
    error = sys.exc_info()[1]
    if error is not None and _from_handler(error.__traceback__):
        raise error


def oops():
    """An exception of the agent's own was swallowed: for tests it is said in the log, nowhere else."""
    pass_on()
    if _log is not None:
        try:
            import traceback

            _write({"error": traceback.format_exc()})
        except Exception:
            pass


def _from_handler(traceback):
    handlers = set()
    for number in range(1, 65):
        try:
            handler = _signal.getsignal(number)
        except ValueError:
            continue
        handlers.add(getattr(getattr(handler, "__func__", handler), "__code__", None))
    handlers.discard(None)
    while traceback is not None:
        if traceback.tb_frame.f_code in handlers:
            return True
        traceback = traceback.tb_next
    return False


def pause(on):
    if _native is not None:
        _native.pause(on)


def tick(function, seconds):
    """Has function() called in the main thread about that often while the program allocates; None: no more."""
    if _native is None:
        return
    if function is None:
        _native.tick(None, 0)
        return

    def call():
        try:
            function()
        except Exception:
            oops()

    _native.tick(id(once.tick_of(call)), int(seconds * 1e9))


def disconnect():
    """The probe leaves: nothing is said any more. Whoever is about to count goes on counting, where it does no harm."""
    global _log
    if _log is not None:
        os.close(_log)
        _log = None


def trim():
    """malloc_trim(0). False: there is none."""
    if _native is not None:
        return _native.trim() >= 0
    try:
        ctypes.CDLL(None).malloc_trim(0)
        return True
    except (AttributeError, OSError):
        return False


def free_bytes():
    """What the allocator holds free; 0 where it does not tell."""
    told = _native.free_bytes() if _native is not None else 0
    return told if told < 1 << 47 else 0
