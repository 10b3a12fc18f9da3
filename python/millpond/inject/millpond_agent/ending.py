"""The end: registered first, so it runs after the program's own atexit functions. What was seen is said again, complete."""

import atexit
import sys

from . import calls, lines, link, periods, state
from .wrapping import put

_exception = None


def install():
    atexit.register(_end)
    put(sys, "excepthook", sys.excepthook, _chain(sys.excepthook))


def remove():
    """The program runs on without us: what is said at the end is said now."""
    atexit.unregister(_end)
    _end()


def _chain(original):
    def excepthook(kind, value, traceback):
        global _exception
        try:
            _exception = "%s: %s" % (kind.__name__, str(value)[:500])
            traceback = _without_us(traceback)
            value.__traceback__ = traceback
        except Exception:
            link.oops()
        original(kind, value, traceback)

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


def _end():
    lines.remove()
    link.tick(None, 0)
    if not state.on:
        return
    try:
        from . import holders

        with state.own_work():
            link.mark("end", "", 0, link.SNAPSHOT)
            holders.say(final=True)
            calls.say()
            link.note(
                {
                    "note": "end",
                    "periods": {"%s %s" % key if key[1] else key[0]: int(count) for key, count in periods.counts().items()},
                    "agent_seconds": round(state.seconds, 4),
                    "agent_bytes": holders.own_bytes(),
                    "exception": _exception,
                }
            )
    except Exception:
        link.oops()
