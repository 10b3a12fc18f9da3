"""Printed lines as marks: a program that prints "epoch 7: loss 0.12" says itself where its rounds end. The probe counts the lines of each place that
prints and asks here now and then (print and sys.stdout.write stay the objects they are); without it they are wrapped. Lines that differ only in
their numbers are one pattern."""

import builtins
import functools
import io
import re
import sys
import time

from . import frames, link, periods, state
from .wrapping import at_stop, hide, kHidden, put

kPatterns = 256  # more than that: a program that prints prose
_number = re.compile(r"[-+]?(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|\b(?:nan|inf)\b")
_round = re.compile(
    r"\b(epochs?|episodes?|folds?|rounds?|iterations?|iters?|iter|trials?|generations?|ep)\b[\s:=#\[(/]*(?:no\.?\s*)?#", re.IGNORECASE)
_numbered = re.compile(_round.pattern[:-1] + r"(\d{1,9})\b", re.IGNORECASE)  # the same with the number that the program gives to the round
_seen = {}  # text of a pattern -> _Pattern
_epoch_line = None  # the pattern whose lines count as epochs, unless a framework counts them
framework_epochs = False


def pattern_of(text):
    """The line with its numbers replaced by #, or None where it has none."""
    text = text.strip()
    if not text or len(text) > 400:
        return None
    line = text.splitlines()[-1].rstrip()[-160:]
    pattern = _number.sub("#", line)
    return pattern if "#" in pattern else None


def is_round(pattern):
    return _round.search(pattern) is not None


def round_word(pattern):
    """The word that counts the rounds of a line, in lower case; empty: none. One of those of _round, so it says nothing that the program knows."""
    found = _round.search(pattern)
    return found.group(1).lower() if found else ""


class _Pattern:
    __slots__ = ("text", "times", "rounds", "first")

    def __init__(self, text, line):
        self.text = text
        self.times = 0
        self.rounds = is_round(text)
        count = _numbered.search(line[-400:]) if self.rounds else None
        self.first = int(count.group(count.lastindex)) if count else 1  # "epoch 0: ..." counts from 0


def _get(text):
    """The pattern of a line; None where it has none, or when there are too many."""
    line = text
    text = pattern_of(text)
    if text is None:
        return None
    pattern = _seen.get(text)
    if pattern is None and len(_seen) < kPatterns:
        pattern = _seen[text] = _Pattern(text, line)
    return pattern


def seen(text):
    """A line was printed or logged."""
    pattern = _get(text)
    if pattern is not None:
        _mark(pattern)


def _mark(pattern):
    global _epoch_line
    pattern.times += 1
    rounds = pattern.rounds
    if pattern.times < 2 and not rounds:
        return
    if pattern.times == 2 and not rounds:
        link.units[link.LINE] += 1  # the first one
    link.units[link.LINE] += 1
    kind = "line"
    if rounds and not framework_epochs and not state.here.phase:
        if _epoch_line is None:
            _epoch_line = pattern
        elif _epoch_line.times == 1 and pattern.times == 2:
            _epoch_line = pattern  # the other was said once: "epoch -1: untrained loss 2.3"; its unit stands for the first of these
        if pattern is _epoch_line:
            kind = "epoch"
            link.units[link.EPOCH] += 1
    periods.period(kind, pattern.text, pattern.first + pattern.times - 1 if rounds else 1)


def _count(pattern, lines):
    """More lines of a pattern, without a mark."""
    pattern.times += lines
    link.units[link.LINE] += lines
    kind = "line"
    if pattern is _epoch_line and not framework_epochs:
        kind = "epoch"
        link.units[link.EPOCH] += lines
    series = periods.get(kind, pattern.text)
    if series is not None:
        series.count += lines
    return series


_ours = None


def install():
    if _ask_probe():
        return
    _wrap_print()
    if type(sys.stdout) is io.TextIOWrapper:  # not one that somebody has put there
        _wrap_write(sys.stdout)


def _wrap_write(stream):
    original = stream.write

    def write(text):
        written = original(text)
        try:
            if "\n" in text and state.on and not state.here.working:
                frame = sys._getframe(1)
                file = frame.f_code.co_filename
                if file != kHidden and frames.is_user_file(file):  # print's own, or a library's progress bar
                    _printed(frame, (text,), {})
        except Exception:
            link.oops()
        return written

    stream.write = ours = hide(write)

    def back():
        if vars(stream).get("write") is ours:
            del stream.write

    at_stop(back)  # of this stream, whatever sys.stdout is then


def _wrap_print():
    global _ours
    original = builtins.print

    @functools.wraps(original)
    def print(*args, **kwargs):  # noqa: A001
        original(*args, **kwargs)
        try:
            if state.on and not state.here.working:
                file = kwargs.get("file")
                if file is None or file is sys.stdout or file is sys.stderr:
                    frame = sys._getframe(1)
                    _printed(frame, args, kwargs)
        except Exception:
            link.oops()

    builtins.print = _ours = hide(print)


def remove():
    """At the end: what still prints while the interpreter is taken down needs nothing of ours."""
    link.prints(None)
    if _ours is not None and builtins.print is _ours:
        builtins.print = _ours.__wrapped__
    if type(sys.stdout) is io.TextIOWrapper:
        vars(sys.stdout).pop("write", None)


def forked():
    """In a child: what it prints is its own."""
    global _epoch_line, framework_epochs, _asking
    _seen.clear()
    _sites.clear()
    _epoch_line, framework_epochs, _asking = None, False, 0.0
    for number, site in _counted.items():
        row = _table[number]
        row.skip = row.due_ns = 0
        site.__init__(site.code)
        site.told = row.hits


class _Site:
    """A call of print in the source. After a few equal patterns it is trusted to print that pattern always, and only looked at now and
    then: a program may print a lot."""

    __slots__ = ("code", "pattern", "hits", "mixed")

    def __init__(self, code):
        self.code = code  # keeps its id from being used again
        self.pattern = None
        self.hits = 0
        self.mixed = False


_sites = {}


def _printed(frame, args, kwargs):
    key = (id(frame.f_code), frame.f_lasti)  # hashing a code object hashes all that is in it
    site = _sites.get(key)
    if site is None:
        if len(_sites) >= 2048:
            return
        site = _sites[key] = _Site(frame.f_code)
    site.hits += 1
    hits = site.hits
    if hits > 8 and not site.mixed and hits & 63:
        pattern = site.pattern
    else:
        if site.mixed and hits > 4096 and hits & 15:
            return  # a function that prints whatever it is given, and much of it
        pattern = _get(_text_of(args, kwargs))
        if hits == 1:
            site.pattern = pattern
        elif pattern is not site.pattern:
            site.mixed = True
    if pattern is not None:
        _mark(pattern)


# Asked by the probe ---------------------------------------------------------------------------------------------------

kNever = 1 << 62
kSure = 8  # equal patterns of one place, and it is trusted
kFree, kShare = 0.02, 0.04  # seconds that asking may take, and of the time
_table = None
_stream = None
_counted = {}  # number -> _Counted
_asking = 0.0


class _Counted(_Site):
    __slots__ = ("told", "odd")

    def __init__(self, code):
        super().__init__(code)
        self.told = 0
        self.odd = 0  # lines that were none of a round: to another file, or a library's


def _ask_probe():
    global _table, _stream
    if type(builtins.print) is not type(len):
        return False
    _stream = sys.stdout if type(sys.stdout) is io.TextIOWrapper else None
    _table = link.prints(_asked, builtins.print, vars(io.TextIOWrapper).get("write"), _stream)
    if _table is not None:
        link.counting.append(_settle)
    return _table is not None


def _settle():
    """Lines that were counted and not asked about belong to the pattern of their place."""
    for number, site in list(_counted.items()):
        new = _table[number].hits - site.told
        if new > 0 and site.pattern is not None and not site.mixed:
            site.told += new
            _count(site.pattern, new)


def _asked(number, values, names):
    global _asking
    # Of the processor, because on a busy machine the clock also counts what others do; and without marks, probes and walks, which have bounds of their own: a program whose probe was
    # dear would have no rounds for a while after it.
    begin = time.thread_time() - periods.spent()
    row = _table[number]
    row.skip, row.due_ns = 0, 0
    try:
        if not state.on and not state.waiting:
            row.skip, row.due_ns = kNever, kNever
        elif not state.here.working and (state.on or periods._child_begins()):
            frame = sys._getframe(1)
            site = _counted.get(number)
            if site is None:
                site = _counted[number] = _Counted(frame.f_code)
            _line(frame, row, site, values, names)
    except Exception:
        link.oops()
    _asking += time.thread_time() - periods.spent() - begin
    over = _asking - kFree - kShare * state.elapsed()
    if over > 0 and row.hits > kSure:  # a program that prints a lot: it is not to wait for us
        row.skip, row.due_ns = kNever, max(row.due_ns, time.monotonic_ns() + int(over / kShare * 1e9))


def _line(frame, row, site, values, names):
    hits = row.hits
    new = hits - site.told
    site.told = hits
    site.hits += 1
    kwargs = {}
    if names is _stream and names is not None:
        ours = "\n" in values[0] and frames.is_user_file(frame.f_code.co_filename)
    else:
        if names is not None:
            kwargs = dict(zip(names, values[-len(names):]))
            values = values[:-len(names)]
        file = kwargs.get("file")
        ours = file is None or file is sys.stdout or file is sys.stderr
    if not ours:
        site.odd += 1
        if site.odd == site.hits and site.odd > kSure:
            row.skip, row.due_ns = 255, kNever
        return
    pattern = _get(_text_of(values, kwargs))
    if site.hits == 1:
        site.pattern = pattern
    elif pattern is not site.pattern:
        site.mixed = True
    if new > 1 and not site.mixed and pattern is not None:
        _count(pattern, new - 1)
    if pattern is not None:
        _mark(pattern)
    if site.mixed or site.hits <= kSure:
        return
    most = 63 if hits < 4096 else 1023
    if pattern is None:
        row.skip, row.due_ns = most, kNever
        return
    series = periods.get("epoch" if pattern is _epoch_line and not framework_epochs else "line", pattern.text)
    if series is None:
        row.skip, row.due_ns = most, kNever
    elif series.count > 32:
        row.skip = min(most, series.stride - series.count % series.stride - 1)
        row.due_ns = time.monotonic_ns() + 50_000_000


def _text_of(args, kwargs):
    """What print wrote, from plain values only: str() of an array may be long work."""
    parts = []
    for value in args[:24]:
        kind = type(value)
        if kind is str:
            parts.append(value[:400])
        elif kind in (int, float, bool):
            parts.append(repr(value))
        else:
            parts.append("0" if hasattr(kind, "__float__") else kind.__name__)
    separator = kwargs.get("sep")
    return (separator if type(separator) is str else " ").join(parts)


def install_logging(logging):
    """Records that reach a handler at level INFO or more."""
    original = logging.Logger.callHandlers

    def reached(self, record):
        if state.on and not state.here.working and record.levelno >= 20:
            try:
                message = record.msg if type(record.msg) is str else ""
                if record.args and message:
                    message = record.getMessage()
                seen(message)
            except Exception:
                link.oops()

    @functools.wraps(original)
    def callHandlers(self, record):
        original(self, record)
        reached(self, record)

    put(logging.Logger, "callHandlers", original, link.after(original, reached, method=True) or hide(callHandlers))
