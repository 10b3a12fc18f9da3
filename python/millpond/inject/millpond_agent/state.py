"""What all parts share: is the agent on, is it at work in this thread, what has it cost."""

import contextlib
import gc
import time

from . import link, threads

on = True
waiting = False  # a child by fork whose agent has not begun (children.py): until then it only counts units
is_forked = False
started = time.monotonic()  # in a child by fork: when it was forked
seconds = 0.0  # of the processor, spent in the agent's bigger work


class _Here(threads.local):
    working = 0  # inside the agent's own work
    phase = 0  # inside fit, evaluate or predict
    tracing = 0  # inside the tracing of a tf.function


here = _Here()


@contextlib.contextmanager
def own_work(apart=False):
    """Around the agent's bigger work: it is not sampled and hooks that it meets do nothing. Keeps its time. apart: what it asks of malloc
    does not come from the program's heap; for what happens in the middle of the program and leaves something behind."""
    global seconds
    begin = time.thread_time()
    outermost = not here.working
    here.working += 1
    link.pause(link.APART if apart else 1)
    try:
        yield
    finally:
        link.pause(0)
        here.working -= 1
        if outermost:
            seconds += time.thread_time() - begin


def elapsed():
    return time.monotonic() - started


_full = 0  # collections of all generations until the fork


def forked():
    global on, waiting, is_forked, started, seconds, _full
    waiting = is_forked = True
    on = False
    started, seconds = time.monotonic(), 0.0
    here.working = here.phase = here.tracing = 0
    _full = gc.get_stats()[-1]["collections"]


def may_touch():
    """Whether all objects may be gone through. In a child by fork that writes into each of them, and makes pages private that were its parent's: not before the child's
    own collector has done so."""
    return not is_forked or gc.get_stats()[-1]["collections"] > _full
