"""@millpond.profile: a function line by line: memory before, after, change, peak, allocations.

    @millpond.profile
    def load(path): ...

    millpond.profile(load)(path)                    # the same, without changing the source
    @millpond.profile(stream=open("memory.txt", "w"))

The table is printed when the outermost profiled call of a thread returns, with all profiled functions that ran in it. `profile.last` is what was printed
last, as an object. Works for methods, generators, coroutines and asynchronous generators; what a function calls counts in the line that calls it."""

from __future__ import annotations

import functools
import inspect
import linecache
import sys
import threading
from typing import IO, Any, Callable, TypeVar, overload

from . import _amounts, _lines

__all__ = ["profile", "Profile", "FunctionProfile", "LineProfile"]

Function = TypeVar("Function", bound=Callable[..., Any])


class LineProfile:
    """One line of a profiled function. Amounts are bytes."""

    __slots__ = ("number", "text", "hits", "before", "after", "change", "peak", "allocated", "freed", "blocks")

    def __init__(self, number: int, text: str, line: _lines.Line, base: int) -> None:
        self.number = number
        self.text = text
        self.hits: int = line.hits
        self.before: int = base + line.before
        self.after: int = base + line.after
        self.change: int = line.change
        self.peak: int = base + line.peak
        self.allocated: int = line.taken
        self.freed: int = line.given
        self.blocks: int = line.blocks

    def __repr__(self) -> str:
        return "<line %d: %s, %d times, %s>" % (self.number, self.text.strip(), self.hits, _amounts.change_of(self.change))


class FunctionProfile:
    """A profiled function: its name, its file, and those of its lines that ran or have text."""

    __slots__ = ("name", "file", "line", "lines")

    def __init__(self, code: Any, source: list[str], lines: Any, base: int) -> None:
        self.name: str = getattr(code, "co_qualname", None) or code.co_name
        self.file = code.co_filename
        self.line = code.co_firstlineno
        self.lines = [LineProfile(code.co_firstlineno + at, source[at] if at < len(source) else "", line, base) for at, line in enumerate(lines)]

    def __repr__(self) -> str:
        return "<profile of %s, %s:%d>" % (self.name, self.file, self.line)


class Profile:
    """What the outermost call of a thread did: functions, totals, the table as text or, in a notebook, as HTML."""

    def __init__(self, found: list[tuple[Any, Any]], totals: _lines.Totals, remarks: list[str]) -> None:
        self.resident_before = totals.resident_begin
        self.resident_after = totals.resident_end
        self.resident_peak = totals.resident_peak
        self.allocated = totals.taken
        self.freed = totals.given
        self.blocks = totals.blocks
        self.kept = totals.kept
        self.peak = totals.peak
        self.seconds = totals.nanoseconds / 1e9
        self.remarks = list(remarks)
        if totals.too_deep:
            self.remarks.append("%d calls were deeper than 4096 profiled calls: they count in the lines above them" % totals.too_deep)
        if totals.frees_unknown:
            self.remarks.append("Python's small objects (up to 512 bytes) are not counted: this interpreter's allocator is not pymalloc")
        base = max(totals.resident_begin, 0)
        self.functions = [FunctionProfile(code, _source_of(code), lines, base) for code, lines in found]
        self.functions.sort(key=lambda function: (function.file, function.line))

    # text -----------------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        out = []
        for function in self.functions:
            out.append("%s (%s:%d)" % (function.name, function.file, function.line))
            rows = [("line", "hits", "before", "after", "change", "peak", "allocated", "blocks")]
            for line in function.lines:
                rows.append(_cells(line))
            widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
            for row, line in zip(rows, [None] + function.lines):
                text = "  ".join(cell.rjust(width) for cell, width in zip(row, widths))
                out.append(("  " + text + "  " + (line.text if line is not None else "")).rstrip())
            out.append("")
        out.append(self.summary())
        out.extend("note: " + remark for remark in self.remarks)
        return "\n".join(out)

    def summary(self) -> str:
        """Two sentences with the totals."""
        resident = ("Resident memory: %s before, %s after, at most %s were seen." % tuple(
            _amounts.text_of(size) for size in (self.resident_before, self.resident_after, self.resident_peak)) if self.resident_before >= 0 else "")
        return ("%s allocated in %s blocks, %s freed, %s kept, in %.3g s. %s" % (
            _amounts.text_of(self.allocated), format(self.blocks, ","), _amounts.text_of(self.freed), _amounts.text_of(self.kept), self.seconds, resident)).rstrip()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from . import _html

        return _html.profile(self)


def _cells(line):
    if not line.hits and not line.change and not line.allocated:
        return (str(line.number),) + ("",) * 7
    amounts = (_amounts.text_of(line.before), _amounts.text_of(line.after), _amounts.change_of(line.change), _amounts.text_of(line.peak), _amounts.text_of(line.allocated))
    return (str(line.number), format(line.hits, ",")) + amounts + (format(line.blocks, ","),)


def _source_of(code):
    """Its lines, as they are known: of a file, of a notebook's cell (linecache), or none."""
    lines = linecache.getlines(code.co_filename)
    return [text.rstrip("\n") for text in lines[code.co_firstlineno - 1:code.co_firstlineno - 1 + _line_count(code)]]


def _line_count(code):
    """Up to the last line that any code inside it has."""
    last = code.co_firstlineno
    todo = [code]
    while todo:
        inner = todo.pop()
        if hasattr(inner, "co_lines"):
            last = max([last] + [line for _, _, line in inner.co_lines() if line])
        else:
            import dis

            last = max([last] + [line for _, line in dis.findlinestarts(inner)])
        todo.extend(constant for constant in inner.co_consts if inspect.iscode(constant))
    return last - code.co_firstlineno + 1


# The decorator --------------------------------------------------------------------------------------------------------


class _Outermost(threading.local):
    """The outermost call of this thread."""

    stream = None
    why_not = None


_outermost = _Outermost()


def _begin(lines, stream):
    _outermost.stream = stream
    _outermost.why_not = lines.begin()


def _end(lines, call=None):
    """call: it ends in another thread than it began in."""
    told = call or _outermost
    why_not = told.why_not
    found, totals = lines.end(why_not is None) if call is None else lines.end_of(call.here, False)
    remarks = [why_not] if why_not else []
    if not why_not and sys.version_info < (3, 12) and sys.gettrace() is not None:
        remarks.append("the program has set a trace function of its own meanwhile: lines that ran after that are not counted")
    profile.last = result = Profile(found, totals, remarks)
    if told.stream is not False:
        stream = told.stream or sys.stderr
        try:
            stream.write(str(result) + "\n")
            stream.flush()
        except (AttributeError, OSError, ValueError):  # closed by now: the function's own result is worth more than the table
            pass


class _Call:
    """A call that is left and resumed: of a generator or a coroutine. It may end in another thread than it began in."""

    __slots__ = ("lines", "here", "thread", "stream", "why_not")

    def __init__(self, lines, stream):
        if not lines.enter():
            _begin(lines, stream)
        self.lines = lines
        self.here = lines.here()
        self.thread = threading.get_ident()
        self.stream, self.why_not = _outermost.stream, _outermost.why_not

    def end(self):
        if threading.get_ident() == self.thread:
            if not self.lines.leave():
                _end(self.lines)
        elif not self.lines.leave_in(self.here):
            _end(self.lines, self)


@overload
def profile(function: Function, *, stream: IO[str] | bool | None = None) -> Function: ...


@overload
def profile(function: None = None, *, stream: IO[str] | bool | None = None) -> Callable[[Function], Function]: ...


def profile(function: Any = None, *, stream: Any = None) -> Any:
    """Measures a function line by line, and prints a table to `stream` (sys.stderr; False: nowhere) when the outermost profiled call returns.
    The table as an object is `profile.last`."""
    if function is None:
        return functools.partial(profile, stream=stream)
    if isinstance(function, (classmethod, staticmethod)):
        return type(function)(profile(function.__func__, stream=stream))
    target = inspect.unwrap(function)
    code = getattr(target, "__code__", None)
    if code is None or not callable(function):
        raise TypeError("millpond.profile needs a function that is written in Python, not %r" % (function,))
    if getattr(function, "__millpond_profile__", False):
        return function
    lines = _lines.get()
    lines.add(code, _line_count(code))
    wrapped = _wrap(function, target, lines, stream)
    wrapped.__millpond_profile__ = True
    return wrapped


profile.last = None


def collect(codes, call):
    """Calls call() with the lines of these code objects counted, whoever calls them, and returns the Profile. Prints nothing."""
    lines = _lines.get()
    for code in codes:
        lines.add(code, _line_count(code))
    if not lines.enter():
        _begin(lines, False)
    try:
        call()
    finally:
        if not lines.leave():
            _end(lines)
    return profile.last


def _wrap(function, target, lines, stream):
    enter, leave = lines.enter, lines.leave

    if inspect.isasyncgenfunction(target):

        @functools.wraps(function)
        async def profiled(*args, **kwargs):
            call = _Call(lines, stream)
            try:
                inner = function(*args, **kwargs)
                try:
                    item = await inner.__anext__()
                    while True:
                        try:
                            sent = yield item
                        except GeneratorExit:
                            await inner.aclose()
                            raise
                        except BaseException as error:
                            item = await inner.athrow(error)
                        else:
                            item = await inner.asend(sent)
                except StopAsyncIteration:
                    return
            finally:
                call.end()

    elif inspect.iscoroutinefunction(target):

        @functools.wraps(function)
        async def profiled(*args, **kwargs):
            call = _Call(lines, stream)
            try:
                return await function(*args, **kwargs)
            finally:
                call.end()

    elif inspect.isgeneratorfunction(target):

        @functools.wraps(function)
        def profiled(*args, **kwargs):
            call = _Call(lines, stream)
            try:
                return (yield from function(*args, **kwargs))
            finally:
                call.end()

    else:

        @functools.wraps(function)
        def profiled(*args, **kwargs):
            if not enter():
                _begin(lines, stream)
            try:
                return function(*args, **kwargs)
            finally:
                if not leave():
                    _end(lines)

    return profiled
