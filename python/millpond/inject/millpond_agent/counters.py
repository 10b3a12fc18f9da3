"""Counters: numbers that frameworks and the process keep anyway. The cheap ones go with periods (about two notes in a second, fewer as a run gets long), the dear
ones with probes. Only what changed is said."""

import gc
import os
import sys

from . import link, state, threads

kEvery = 0.5
kShare = 1 / 2000  # of the time so far: some thousand notes in any run, however long
_page = os.sysconf("SC_PAGE_SIZE")
_last_time = -1e9
_last = {}
_sources = []  # functions that return {name: number}, cheap
_dear = []  # the same, from all objects and how many there are of each type


def rss():
    """Bytes of the process that are resident."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * _page


def add(function):
    _sources.append(function)


def add_dear(function):
    """function(objects, types) -> {name: number}; called at probes. types: type to count."""
    _dear.append(function)


def _cheap():
    generations = gc.get_stats()
    values = {
        "gc.collected": sum(generation["collected"] for generation in generations),
        "gc.full": generations[-1]["collections"],
        "gc.enabled": int(gc.isenabled()),
        "python.blocks": sys.getallocatedblocks(),
        "threads": threads.count(),
    }
    try:
        values["fds"] = len(os.listdir("/proc/self/fd"))
    except OSError:
        pass
    for function in _sources:
        try:
            values.update(function())
        except Exception:
            link.oops()
    return values


def say(now):
    global _last_time
    if now - _last_time < max(kEvery, kShare * state.elapsed()):
        return
    _last_time = now
    _note(_cheap())


def say_all(objects, types):
    values = _cheap()
    values["gc.objects"] = len(objects)
    try:
        with open("/proc/self/task/%d/children" % os.getpid()) as file:
            values["children"] = len(file.read().split())
    except OSError:
        pass
    for function in _dear:
        try:
            values.update(function(objects, types))
        except Exception:
            link.oops()
    _note(values)


def _note(values):
    changed = {name: value for name, value in values.items() if _last.get(name) != value}
    if changed and link.note({"note": "counters", "values": changed}):
        _last.update(changed)
