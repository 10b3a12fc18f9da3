"""What all parts share: is the agent on, is it at work in this thread, what has it cost."""

import contextlib
import threading
import time

from . import link

on = True  # off in children by fork: they only count units
started = time.monotonic()
seconds = 0.0  # of the processor, spent in the agent's bigger work


class _Here(threading.local):
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


def forked():
    global on
    on = False
    here.working = 0
    try:
        link.reconnect()
    except Exception:
        pass
