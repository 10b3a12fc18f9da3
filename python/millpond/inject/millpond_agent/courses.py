"""How many items each holder that a walk has found had at the end of rounds: exact numbers, which a few walks and their samples are not. So each holder has a course of its own, and
one that has stopped, or goes round in a bound, is told from one that grows, however short the run."""

import time

from . import link, state

kPoints = 48  # of one holder; when there are more every second one goes
kHolders, kWhole = 32, 24  # that are followed; as long as there are no more, single blocks too
kRisen = 3  # points that tell a block which grows itself
kShare = 0.003  # of the time may go to asking

_known = {}  # (type, words of a chain) -> _Course
_kind = None  # of the series whose rounds are counted
_next = -1e9  # when may be asked again


class _Course:
    __slots__ = ("chain", "points", "stride")

    def __init__(self, chain):
        self.chain = chain
        self.points = []  # (round, items, what lies in these)
        self.stride = 1

    def add(self, period, sizes):
        if self.points and self.points[-1][0] >= period:
            self.points.pop()
        self.points.append((period,) + sizes)
        if len(self.points) > kPoints:
            self.points = self.points[:1] + self.points[2::2] if len(self.points) % 2 else self.points[::2] + self.points[-1:]
            self.stride *= 2

    def said(self):
        """`lengths`: [[round, items]]; `inner`, where it is known at all rounds and not constant: the same of what lies in the items."""
        inner = [[period, inner] for period, _, inner in self.points]
        told = {"lengths": [[period, own] for period, own, _ in self.points]}
        if None not in [size for _, size in inner] and len({size for _, size in inner}) > 1:
            told["inner"] = inner
        return told


def seen(row, chain, series_kind, period, sizes, whole=False):
    """A walk has found this holder. The row gets what is known of its course. Whether it has risen and never fallen. whole: a single block; sizes are bytes."""
    global _kind
    if _kind != series_kind:
        _known.clear()
        _kind = series_kind
    if sizes[0] is None or row["how"] != "reached" or not row["chain"]:
        return False
    key = row["type"], tuple(row["chain"])
    course = _known.get(key)
    if course is None:
        if len(_known) >= (kWhole if whole else kHolders) and not _forget(period):
            return False
        course = _known[key] = _Course(chain)
    course.chain = chain
    course.add(period, sizes)
    row.update(course.said())
    lengths = row["lengths"]
    return len(lengths) >= kRisen and all(before[1] <= after[1] for before, after in zip(lengths, lengths[1:])) and lengths[-1][1] > lengths[0][1]


def _forget(period):
    """Makes room: the one that was seen longest ago goes, if the last walks did not find it."""
    key = min(_known, key=lambda each: _known[each].points[-1][0])
    if _known[key].points[-1][0] > period * 0.75:
        return False
    del _known[key]
    return True


def following():
    return bool(_known) and time.monotonic() >= _next


def after_period(series, sizes):
    """A round of the leading series is over. sizes(chain): of the holder at its end, as seen() gets them."""
    global _next
    if not following() or series.kind != _kind:
        return
    begin = time.thread_time()
    for course in _known.values():
        if course.points and series.count - course.points[-1][0] >= course.stride:
            found = sizes(course.chain)
            if found[0] is not None:
                course.add(_round(series), found)
    _next = time.monotonic() + (time.thread_time() - begin) / kShare


def _round(series):
    return int(series.count) if series.kind != "timer" else series.count


def finish(series, sizes):
    """The program ends: what each holder has now, unless it was emptied, as programs do before they end, or is gone with the function whose variable it was."""
    if series is None or series.kind != _kind:
        return
    period = round(state.elapsed(), 2) if _kind == "timer" else _round(series)
    for course in _known.values():
        found = sizes(course.chain) if course.points else (None, None)
        if found[0] is not None and found[0] >= course.points[-1][1] and period > course.points[-1][0]:
            course.add(period, found)


def say():
    """At the end, what was seen last."""
    rows = [dict({"type": kind, "chain": list(words), **course.said()}, **({"whole": True} if course.chain.whole else {})) for (kind, words), course in _known.items() if len(course.points) > 1]
    if rows:
        link.note({"note": "courses", "kind": _kind, "holders": rows})
