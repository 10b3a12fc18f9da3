"""The way to the probe: libmillpond_probe.so is loaded before Python (LD_PRELOAD), its functions are called by ctypes.
src/probe/shared.h declares them. Without it everything here does nothing, except that MILLPOND_AGENT_LOG names a file
for what would be said: one JSON object on each line."""

import ctypes
import json
import os
import time

from . import once

BEGIN, END, PERIOD, SNAPSHOT = 1, 2, 4, 8
BATCH, EPOCH, MODEL, CALL, TRACE, COMPILE, LINE, FIT = range(8)  # places in `units`
APART = 2  # for pause
kUnits = 16

units = [0] * kUnits  # with the probe: its own counters in shared memory
counting = []  # functions that bring them up to date
_native = None
_log = None


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
        self.tick = library.millpond_probe_tick
        self.tick.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64]
        self.tick.restype = None
        holding_the_gil = ctypes.PyDLL(path)
        holding_the_gil.millpond_probe_python()


def connect(library=None):
    """Finds the probe: in front of the program, or where it was loaded from. False: nobody listens."""
    global _native, _log
    path = os.environ.get("MILLPOND_AGENT_LOG")
    if path:
        _log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
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


def native():
    return _native is not None


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
    if _log is not None:
        _write(values)
    if _native is None:
        return True
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), default=str).encode("utf-8", "replace")
    return _native.note(text, len(text)) == 0


def _write(values):
    text = json.dumps(values, ensure_ascii=False, default=str) + "\n"
    os.write(_log, text.encode("utf-8", "replace"))


def oops():
    """An exception of the agent's own was swallowed: for tests it is said in the log, nowhere else."""
    if _log is not None:
        try:
            import traceback

            _write({"error": traceback.format_exc()})
        except Exception:
            pass


def pause(on):
    if _native is not None:
        _native.pause(on)


def tick(function, seconds):
    """Has function() called in the main thread about that often while the program allocates; None: no more."""
    if _native is None:
        return
    if function is None:
        _native.tick(None, None, 0)
        return

    def call():
        try:
            function()
        except Exception:
            oops()

    called = once.callback(call)
    _native.tick(ctypes.cast(ctypes.pythonapi.Py_AddPendingCall, ctypes.c_void_p), ctypes.cast(called, ctypes.c_void_p), int(seconds * 1e9))


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
