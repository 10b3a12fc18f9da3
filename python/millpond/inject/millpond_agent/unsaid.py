"""What objects hold without saying so to the collector, as pairs of the object and what it holds: the functions of atexit, which the interpreter keeps in a table of its own
since 3.10, and what a pickler has met."""

import atexit
import ctypes
import os
import struct
import sys

from . import link

kMost = 10000
kScanned = 1 << 19  # bytes of the interpreter's state
_table = None  # the address at which the interpreter says where its table is and how long; False: not found


def links():
    """[(object, what it holds)], alive while the list is."""
    try:
        return [(atexit, part) for part in _registered()]
    except Exception:
        link.oops()
        return []


def memos(objects):
    """What picklers written in C have met, and keep: [(pickler, object)]."""
    kind = getattr(sys.modules.get("_pickle"), "Pickler", None)
    found = []
    for thing in objects if kind is not None else ():
        if type(thing) is kind:
            try:
                found += [(thing, value) for _, value in list(thing.memo.copy().values())[:kMost]]
            except Exception:  # it is at work in another thread
                pass
    return found


def _registered():
    """Functions that atexit has, with their arguments."""
    global _table
    count = atexit._ncallbacks()
    if sys.version_info < (3, 10) or not 1 < count <= kMost or _table is False:  # one is ours
        return []
    from . import ending

    if sys.version_info >= (3, 14):
        return _registered_list(ending.registered())
    if _table is None:
        memory = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)  # what is not there cannot be read, and that is all
        try:
            _table = _find(memory, count, id(ending.registered())) or False
        finally:
            os.close(memory)
    return [part for part in link.registered(_table, count) if part is not None] if _table else []


def _find(memory, count, ours):
    """The table whose length is what atexit says, and in which our own function stands."""
    state = ctypes.pythonapi.PyInterpreterState_Get
    state.restype = ctypes.c_void_p
    begin = state()
    text = _readable(memory, begin)
    wanted = struct.pack("<i", count)
    at = text.find(wanted)
    while at >= 0:
        if at >= 8 and at % 8 == 0 and at + 8 <= len(text):
            entries, _, room = struct.unpack("<Qii", text[at - 8:at + 8])
            if count <= room <= 16 * kMost and entries > 4096 and entries % 8 == 0 and entries < 1 << 47 and _stands_in(memory, entries, count, ours):
                return begin + at - 8
        at = text.find(wanted, at + 1)
    return None


def _readable(memory, begin):
    """What can be read from there on, up to kScanned bytes: as far as it is mapped."""
    return os.pread(memory, kScanned, begin)


def _stands_in(memory, entries, count, ours):
    try:
        for at in struct.unpack("<%dQ" % count, os.pread(memory, 8 * count, entries)):
            if 4096 < at < 1 << 47 and at % 8 == 0 and struct.unpack("<Q", os.pread(memory, 8, at))[0] == ours:
                return True
    except (OSError, struct.error):
        pass
    return False


def _registered_list(ours):
    """Since 3.14 it is a list of tuples."""
    import gc

    for entry in gc.get_referrers(ours):
        if type(entry) is tuple and len(entry) == 3 and entry[0] is ours:
            for table in gc.get_referrers(entry):
                if type(table) is list and len(table) == atexit._ncallbacks():
                    return [table]
    return []

