"""A child by fork has an agent of its own. It begins late: most children live for a moment and are to cost nothing, so at the fork only a clock is set, and
the first work of the agent after kWait seconds (a tick, a printed line, a task) begins anew with empty tables. Locks of threads that are not there any more
are made anew, and nothing is asked of a framework that the parent started: its locks may be held for ever. Pages that are still the parent's stay so: see
state.may_touch.

What a worker does again and again is a round of it: tasks it takes from a queue or a pipe, connections it accepts, epochs that a DataLoader tells it of."""

import os
import sys
import time

from . import adders, calls, cells, counters, courses, ending, gpu, holders, jax_hooks, keras_hooks, lines, link, periods, probes, puts, state, strays, survivors, tensorflow_hooks, threads

kWait = 0.75  # seconds that a child has lived before its agent begins
kFresh = (adders, calls, cells, counters, courses, holders, jax_hooks, keras_hooks, periods, probes, puts, strays, survivors, tensorflow_hooks)
kKept = ("_registered", "enabled")  # what holders.py asks of libraries; what the user asked for
_as_begun = {}  # module -> {name: value} before anything was seen
_early = {}  # kind -> how often it came before the agent began
_hooked = set()
_told = False


def remember():
    """Called when the agent starts: what the tables are like when nothing was seen."""
    for module in kFresh:
        _as_begun[module] = {
            name: value.copy() if isinstance(value, (dict, list, set)) else value
            for name, value in vars(module).items()
            if not name.startswith(("k", "__")) and name not in kKept and (value is None or isinstance(value, (bool, int, float, dict, list, set)))
        }


def forked():
    """In the child, right after the fork."""
    global _told
    _early.clear()
    _told = False
    state.forked()
    try:
        link.reconnect()
        if link.watching():
            _hook_tasks()
    except Exception:
        link.oops()


def may_begin():
    """Whether the agent is on; begins it when its time has come."""
    if state.waiting and time.monotonic() - state.started >= kWait and not state.here.working:
        state.waiting = False
        if link.watching():
            try:
                with state.own_work():
                    _begin()
                state.on = True
            except Exception:
                link.oops()
    return state.on


def _begin():
    rounds = {"%s %s" % key if key[1] else key[0]: int(count) for key, count in periods.said_counts().items()}  # of the parent, at the fork
    for module, names in _as_begun.items():
        now = vars(module)
        for name, value in names.items():
            now[name] = value.copy() if isinstance(value, (dict, list, set)) else value
    holders.lock = threads.Lock()
    for registry in holders._registered.values():
        del registry[2][:]
    lines.forked()
    gpu.forked()
    for unit in range(link.kUnits):
        link.units[unit] = 0
    for kind, times in _early.items():
        series = periods.get(kind)
        series.count = times
    ending.in_child()
    from . import _facts

    link.note(dict(_facts(), how="fork", parent=os.getppid(), rounds=rounds))
    for fact in link.frameworks:
        link.note(fact)
    tell()


def tell():
    """Says once who this process is among those of multiprocessing, when that is known."""
    global _told
    if _told:
        return
    process = _of_multiprocessing()
    if process is not None:
        _told = True
        link.note({"note": "process", "how": "fork" if state.is_forked else "spawn", "name": str(process)[:80]})


def _of_multiprocessing():
    """The name of a child of multiprocessing; None: this is none."""
    module = sys.modules.get("multiprocessing.process")
    if getattr(module, "_parent_process", None) is None:
        return None
    return getattr(getattr(module, "_current_process", None), "_name", None)


# What a worker does again and again ----------------------------------------------------------------------------------------

def came(kind):
    """One more round of a worker. Also before its agent has begun."""
    try:
        if state.here.working:
            return
        if may_begin():
            periods.period(kind)
        elif state.waiting:
            _early[kind] = _early.get(kind, 0) + 1
    except Exception:
        link.oops()


def _task(*args, **kwargs):
    came("task")


def _request(*args, **kwargs):
    came("request")


def _epoch(*args, **kwargs):
    came("loader")


kTaken = (("multiprocessing.queues", "Queue", "get", _task), ("multiprocessing.queues", "SimpleQueue", "get", _task),
          ("multiprocessing.connection", "_ConnectionBase", "recv", _task), ("socket", "socket", "accept", _request),
          ("torch.utils.data.dataloader", "_DatasetKind", "create_fetcher", _epoch))  # a worker makes one when an epoch begins


def _hook_tasks():
    """Only in children: nobody else sees these."""
    for module, owner, name, then in kTaken:
        owner = getattr(sys.modules.get(module), owner, None)
        original = None if owner is None or (owner, name) in _hooked else vars(owner).get(name)
        if original is None:
            continue
        _hooked.add((owner, name))
        if type(original) is staticmethod:
            made = link.after(original.__func__, then)
            made = None if made is None else staticmethod(made)
        else:
            made = link.after(original, then, method=True)
        if made is not None:
            setattr(owner, name, made)


def _of_worker(module):
    """In a process that multiprocessing has started anew these are imported while it unpacks what it was given."""
    process = sys.modules.get("multiprocessing.process")
    if hasattr(getattr(process, "_current_process", None), "_inheriting"):
        _hook_tasks()


HOOKS = {"multiprocessing.queues": _of_worker, "multiprocessing.connection": _of_worker, "torch.utils.data.dataloader": _of_worker}
