"""Probes: gc.collect (not where the program turned it off) and malloc_trim together at rounds 4, 8, 16, ... of the leading series, resident size before and after each: what
gc gives back was garbage in cycles, what trim gives back was free already. They must not cure the patient, so they are few, and
they take at most 2 % of the time, the second 5 %. These two come all the same when they have something to tell, because memory grew or much of
it is free: a short run has no more than these, and a large framework has so many objects that each takes a good part of a second.
Between them lighter looks at what the user's code holds (holders.py) at rounds 2, 3, 4, 6, 8, 12, 16, ..."""

import gc
import os
import sys
import time
from collections import Counter

from . import calls, counters, cycles, frames, holders, link, state, survivors
from .counters import rss

enabled = os.environ.get("MILLPOND_PROBES", "1") != "0"
kShare, kSecondShare = 0.02, 0.05
kFirstGrown, kGrown, kFree, kLeast = 0.01, 0.015, 0.05, 5 << 20  # of resident memory; bytes
kPerBlock = 2e-7  # seconds of a probe for each object of Python: 0.31 s were seen for 1.5 million
kAskEvery = 0.25
kBlock = 64  # bytes
_done = 0
_last_end = None
_last_cost = 0.0
_last_rss = None
_first_rss = None  # when rounds began
_next_question = -1e9
_last_garbage = False  # the last probe found garbage in cycles: the next one looks of what types
_scan_seconds = 0.0


def after_period(series, now):
    """Called at every period mark, inside own work (periods.py)."""
    global _first_rss
    from . import periods

    scans = series.count >= series.next_scan or series.count >= series.next_probe
    due = scans or survivors.is_due(series)
    if not (due or survivors.follows()) or periods.leader() is not series or not holders.lock.acquire(False):
        return
    try:
        survivors.after_round(series)
        if not due:
            return
        if _first_rss is None:
            _first_rss = rss()
        if _is_time(series, now):
            while series.next_probe <= series.count:
                series.next_probe *= 2
            series.next_scan = max(series.next_scan, _after(series.count))
            if enabled and state.may_touch():
                _probe(series)
            else:
                _look(series)
        elif series.count >= series.next_scan and _scan_seconds <= 0.05 + 0.01 * state.elapsed():
            series.next_scan = _after(series.count)
            _look(series)
        else:
            survivors.after_period(series)
    finally:
        holders.lock.release()


def _after(count):
    """The next of 2, 3, 4, 6, 8, 12, 16, 24, ..."""
    if count < 2:
        return 2
    step = 2
    while step * 2 <= count:
        step *= 2
    return step * 3 // 2 if count < step * 3 // 2 else step * 2


def _is_time(series, now):
    global _next_question
    if series.count < series.next_probe or now < max(series.first + 0.5, _next_question):
        return False
    _next_question = now + kAskEvery
    return _affordable(now)


def _affordable(now):
    if _done == 0:
        return kPerBlock * sys.getallocatedblocks() <= kShare * state.elapsed() or _grew(_first_rss, kFirstGrown) or link.free_bytes() > max(kLeast, kFree * rss())
    since = now - _last_end
    if _done == 1:
        return since > _last_cost and (_last_cost <= kSecondShare * since or _grew(_last_rss, kGrown))
    return _last_cost <= kShare * since


def _grew(since, share):
    return rss() - since > max(kLeast, share * since)


def _look(series):
    """What the user's code holds, without gc."""
    global _scan_seconds
    begin = time.thread_time()  # of the processor: on a busy machine the clock runs on without us
    holders.scan()
    holders.say()
    calls.say()
    survivors.after_period(series)
    _scan_seconds += time.thread_time() - begin


def _held():
    """About what allocators have handed out, but for a constant: less what they hold free, and Python's blocks as if each were a small one."""
    return kBlock * sys.getallocatedblocks() - link.free_bytes()


def _types_gone(before):
    """The commonest types among what gc took away, name to count."""
    if before is None:
        return {}
    before.subtract(map(type, gc.get_objects()))
    return {kind.__qualname__: count for kind, count in before.most_common(8) if count > 0}


def may_collect():
    """Whether a collection more is what the program might see anyway: it has not turned gc off, and its own code is not told of collections (JAX's is, of all)."""
    return gc.isenabled() and gc.get_threshold()[0] > 0 and not gc.get_debug() and not any(map(_is_users, gc.callbacks))


def _is_users(callback):
    code = getattr(getattr(callback, "__func__", callback), "__code__", None)
    return frames.is_user_file(code.co_filename) if code else frames.user_module(sys.modules.get(getattr(callback, "__module__", None)))


def _probe(series):
    global _done, _last_end, _last_cost, _last_garbage, _last_rss
    begin, used = time.perf_counter(), time.thread_time()
    before = rss()
    collects = may_collect()
    types = Counter(map(type, gc.get_objects())) if _last_garbage and collects else None
    held = _held()
    collected = gc.collect() if collects else 0
    after_gc = rss()
    by_gc = before - after_gc + held - _held()  # what trim gives back was free before
    trimmed = link.trim()
    after_trim = rss()
    grew = _last_rss is not None and after_trim - _last_rss > 1 << 20
    _last_rss = after_trim
    _last_garbage = collected >= 200 and by_gc >= 1 << 20
    middle = time.perf_counter()
    garbage = _types_gone(types)
    piled = None
    if not collects and not gc.isenabled():
        objects = gc.get_objects()
        try:
            piled = cycles.garbage(objects)
        finally:
            del objects
        if piled is not None:
            garbage = piled[2]
    link.note(
        {
            "note": "probe",
            "period": int(series.count),
            "kind": series.kind,
            "rss": before,
            "after_gc": after_gc,
            "after_trim": after_trim if trimmed else None,
            "collected": collected,
            "seconds": round(middle - begin, 5),
            "gc_types": garbage,
            "garbage": piled[0] if piled else 0,
            "garbage_bytes": piled[1] if piled else 0,
        }
    )
    objects = gc.get_objects()
    try:
        types = Counter(map(type, objects))
        counters.say_all(objects, types)
        holders.scan(objects, types, grew)
        survivors.after_period(series, objects)
    finally:
        del objects
    holders.say()
    calls.say()
    _done += 1
    _last_end = time.monotonic()
    _last_cost = time.thread_time() - used
