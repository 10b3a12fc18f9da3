"""The end: registered first, so it runs after the program's own atexit functions. What was seen is said again, complete."""

import atexit
import os
import sys

from . import calls, lines, link, periods, state
from .wrapping import put

_exception = None
_registered = None
_said = None  # the process that has said its last


def install():
    global _registered
    _registered = link.untraced(_end)
    atexit.register(_registered)
    if type(sys.excepthook) is not type(len) or not link.exceptions(_seen, sys.excepthook):
        put(sys, "excepthook", sys.excepthook, _chain(sys.excepthook))


def registered():
    """Our function in the table of atexit."""
    return _registered


def remove():
    """The program runs on without us: what is said at the end is said now."""
    atexit.unregister(_registered)
    _end()


def _seen(kind, value, traceback):
    """An exception that nobody caught is about to be printed; the traceback as it would be without us."""
    global _exception
    try:
        _exception = kind.__name__  # never its text: that may hold anything the program knows
        traceback = _without_us(traceback)
        value.__traceback__ = traceback
    except Exception:
        link.oops()
    return traceback


def _chain(original):
    def excepthook(kind, value, traceback):
        original(kind, value, _seen(kind, value, traceback))

    return excepthook


def _without_us(traceback):
    """The traceback as it would be without wrappers."""
    from .wrapping import kHidden

    while traceback is not None and traceback.tb_frame.f_code.co_filename == kHidden:
        traceback = traceback.tb_next
    entry = traceback
    while entry is not None:
        following = entry.tb_next
        while following is not None and following.tb_frame.f_code.co_filename == kHidden:
            following = following.tb_next
        if following is not entry.tb_next:
            entry.tb_next = following
        entry = following
    return traceback


def in_child():
    """A child of multiprocessing ends without atexit."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.Finalize(None, _registered, exitpriority=-1000)


def _end():
    global _said
    lines.remove()
    link.exceptions(None)
    link.tick(None, 0)
    if not state.on or _said == os.getpid():
        return
    _said = os.getpid()
    try:
        from . import cells, courses, gpu, holders, puts, survivors

        with state.own_work():
            gpu.stop()
            link.mark("end", "", 0, link.SNAPSHOT)
            holders.say(final=True)
            survivors.finish(at_end=True)
            lengths = survivors.Lengths()
            puts.finish(periods.leader(), lengths)
            courses.finish(periods.leader(), lengths)
            courses.say()
            calls.say()
            cells.say()
            link.note(
                {
                    "note": "end",
                    "periods": {"%s %s" % key if key[1] else key[0]: int(count) for key, count in periods.said_counts().items()},
                    "agent_seconds": round(state.seconds, 4),
                    "agent_bytes": holders.own_bytes(),
                    "exception": _exception,
                }
            )
    except Exception:
        link.oops()
