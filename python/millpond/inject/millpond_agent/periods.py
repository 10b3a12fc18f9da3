"""Periods: the same place of a loop, again and again. Every kind of mark that recurs is a series of its own (kind and name); the
verdict chooses among them. A mark with a snapshot costs milliseconds, so snapshots are thinned by doubling: every 2^k-th mark
of a series has one, at most kMost in a run and about ten in a second (the first few may come faster: a run may be short), and all of
them together take about 1 % of the time."""

import os
import sys
import time

from . import counters, frames, gpu, link, probes, state

kMost = 512
kCoarse = ("round", "epoch", "line", "fit", "model", "loader", "loop", "task", "request")  # what a person would call a round; others come in thousands
kSeriesMost = 64
kSettle = 0.75  # seconds without an import

_series = {}  # (kind, name) -> Series
_snapshot_seconds = 0.0
_modules = 0
_settled = 0.0


class Series:
    __slots__ = ("kind", "name", "said", "coarse", "count", "stride", "taken", "first", "marked", "snapped", "next_probe", "next_scan", "shift")

    def __init__(self, kind, name, now):
        self.kind = kind
        self.name = name  # may be words that the program prints: it stays in this process
        self.said = _said(kind, name)
        self.coarse = kind in kCoarse
        self.count = 0
        self.stride = 1
        self.taken = 0
        self.first = now
        self.marked = self.snapped = -1e9
        self.next_probe = 4
        self.shift = 0  # from our count to that of the program, which may begin with 0
        self.next_scan = 1 if kind == "timer" else 2  # a silent program may be a short one

    def wants_snapshot(self, now):
        """Thinning by doubling: also while the marks come too fast or snapshots have become dear."""
        if self.count % self.stride:
            return False
        gap = (0.1 if self.taken >= 16 else 0.01) if self.coarse else (0.5 if self.taken >= 8 else 0.05)
        elapsed = now - state.started
        most = 0.3 + 0.02 * elapsed if self.coarse else 0.1 + 0.005 * elapsed  # of processor time; steps give way to rounds
        while now - self.snapped < gap or self.taken >= kMost or _snapshot_seconds > most:
            if self.taken >= kMost:
                self.taken //= 2
            self.stride *= 2
            if self.count % self.stride or self.stride > 1 << 40:
                return False
            if now - self.snapped >= gap:
                break
        self.taken += 1
        self.snapped = now
        return True


def _said(kind, name):
    """What the run file is told instead of a name: words that a program prints or gives a progress bar are its own. "epoch at train.py:31" is a word of ours
    (lines.round_word) and where the line is printed."""
    if kind not in ("line", "loop") and not (kind == "epoch" and name not in ("", "fit")):
        return name
    from . import lines

    frame = frames.user_frame()
    place = "%s:%d" % (os.path.basename(frame.f_code.co_filename), frame.f_lineno or 0) if frame is not None else "a library:0"
    word = lines.round_word(name)
    said = "%s at %s" % (word, place) if word else place
    alike = sum(1 for series in list(_series.values()) if series.kind == kind and series.said.split(" (")[0] == said)
    return "%s (%d)" % (said, alike + 1) if alike else said


def get(kind, name=""):
    series = _series.get((kind, name))
    if series is None:
        if len(_series) >= kSeriesMost:
            return None
        series = _series[(kind, name)] = Series(kind, name, time.monotonic())
    return series


def period(kind, name="", told=1):
    """One more round of this kind is done. `told`: the number that the program itself gives to it; the first one counts."""
    if not (state.on or _child_begins()) or state.here.working:
        return
    series = get(kind, name)
    if series is None:
        return
    series.count += 1
    if series.count == 1:
        series.shift = told - 1
    if series.coarse or series.count % series.stride == 0:
        _reached(series)


def round_ends(name, index=None):
    """The program itself says that a round of a loop of its own is over (millpond._inside.Session.mark_round)."""
    if not state.on or state.here.working:
        return
    series = get("round", name)
    if series is None:
        return
    series.count = series.count + 1 if index is None else max(series.count + 1, int(index) + 1)
    if "epoch" in name.lower():
        link.units[link.EPOCH] += 1
    _reached(series)


class Countdown:
    """A series, and a unit, of what comes a thousand times in a second, counted with the least there is:

        for _ in steps.left:
            return
        steps.reached()

    takes one number out of an iterator, and only when none is left is there something to do. The counts are brought up to date then and
    before every mark."""

    __slots__ = ("kind", "name", "unit", "given", "left")
    kMost = 256  # the counts lag by no more

    def __init__(self, kind, name, unit):
        self.kind = kind
        self.name = name
        self.unit = unit
        self.given = 0
        self.left = iter(range(0))
        link.counting.append(self.settle)

    def settle(self):
        left = self.left.__length_hint__()
        self._add(self.given - left)
        self.given = left

    def _add(self, taken):
        series = get(self.kind, self.name) if taken else None
        link.units[self.unit] += taken
        if series is not None:
            series.count += taken
        return series

    def reached(self):
        try:
            self.settle()
            series = self._add(1)
            until = self.kMost
            if series is not None:
                if series.count % series.stride == 0 and state.on and not state.here.working:
                    _reached(series)
                until = min(until, series.stride - series.count % series.stride)
            self.given = until - 1
            self.left = iter(range(self.given))
        except Exception:
            link.oops()


def _reached(series):
    global _snapshot_seconds
    kind, name = series.kind, series.said
    now = time.monotonic()
    flags = link.PERIOD
    if series.wants_snapshot(now):
        flags |= link.SNAPSHOT
    elif not series.coarse or (now - series.marked < 0.05 and series.count > 32):
        return
    series.marked = now
    begin = time.thread_time()
    link.mark(kind, name, series.count + series.shift, flags)
    if flags & link.SNAPSHOT:
        _snapshot_seconds += time.thread_time() - begin
    try:
        with state.own_work(apart=True):
            counters.say(now)
            gpu.after_period(series, now)
            _tell()
            probes.after_period(series, now)
    except Exception:
        link.oops()


def spent():
    """Seconds of the processor that marks and all that is done at them have taken."""
    return _snapshot_seconds + state.seconds


def tick():
    """Seconds as rounds, for a program that says nothing of its own: they are looked at and probed like others. The marks of such a program are the
    collector's."""
    global _modules, _settled
    if not (state.on or _child_begins()) or state.here.working or state.here.phase:
        return
    now = time.monotonic()
    if len(sys.modules) != _modules:  # still importing: a framework may be about to say where its rounds are
        _modules = len(sys.modules)
        _settled = now + kSettle
    if now < _settled:
        return
    with state.own_work(apart=True):
        series = get("timer")
        seconds = round(state.elapsed(), 2)
        if series is None or seconds < int(series.count) + 1 or leader() not in (None, series):
            return
        series.count = seconds
        counters.say(now)
        gpu.after_period(series, now)
        _tell()
        probes.after_period(series, now)


def _tell():
    from . import children

    children.tell()


def _child_begins():
    if not state.waiting:
        return False
    from . import children

    return children.may_begin()


def leader():
    """The series that probes and rates of growth follow: the best that recurs so far."""
    best = None  # (rank, series)
    everything = list(_series.values())
    now = time.monotonic()
    rounds = any(series.coarse and series.kind != "model" for series in everything)
    for series in everything:
        if series.count < 2 or series.kind == "timer":
            continue
        if not series.coarse and (rounds or series.count < 64 or now - series.first < 3):
            if not _long_without_rounds(everything, now):
                continue
        rank = (_rank(series), -series.count)
        if best is None or rank < best[0]:
            best = (rank, series)
    if best is not None:
        return best[1]
    return _series.get(("timer", ""))


def _long_without_rounds(everything, now):
    """A single epoch of many minutes: then steps lead."""
    last = max((series.marked for series in everything if series.coarse), default=-1e9)
    return now - max(last, state.started) > 60


def _rank(series):
    from . import lines

    kind = series.kind
    if kind == "round":
        return -1
    if kind == "epoch":
        if series.name == "fit":
            fits = _series.get(("fit", ""))
            # epochs of few long fits are the rounds; of many short ones the fits, or what the program prints after each
            return 0 if fits is None or series.count > 3 * fits.count else 4
        return 1
    if kind == "line":
        if lines.is_round(series.name):
            return 1
        return 3 if series.count > 2 else 6
    return {"fit": 2, "loader": 5, "loop": 5, "model": 6, "task": 6, "request": 6, "step": 7, "call": 8}.get(kind, 9)


def counts():
    link.settle()
    return {key: series.count for key, series in list(_series.items())}


def said_counts():
    """The same under the names that the run file knows."""
    link.settle()
    return {(series.kind, series.said): series.count for series in list(_series.values())}
