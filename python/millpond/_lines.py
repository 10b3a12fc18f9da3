"""libmillpond_lines.so, by ctypes: what each line of a profiled function takes and gives back. src/probe/line_profile.h says how it is counted.

One object for the process, made at the first profiled call. The hooks are in the process while a profiled function runs; after the outermost call they go
again, unless that was so short that bringing them in would cost more than what is measured. The tool id of sys.monitoring and its events go with every outermost call."""

import atexit
import ctypes
import os
import sys
import threading
import time

_kVersion = 1
_kStarted, _kNoPython, _kNoMalloc = range(3)
_kEnter, _kLeave, _kOnLine, _kOnBegin, _kOnEnd = range(5)
_kShort = 200  # a call shorter than that many starts leaves the hooks where they are; taking them out costs about three times as much


class LinesError(RuntimeError):
    """Lines cannot be counted here; the text says why, and what to do."""


class Line(ctypes.Structure):
    """As in line_profile.h."""

    _fields_ = [(name, ctypes.c_int64) for name in ("hits", "before", "after", "change", "peak", "taken", "given", "blocks")]


class Totals(ctypes.Structure):
    """As in line_profile.h."""

    _fields_ = [(name, ctypes.c_int64) for name in ("taken", "given", "blocks", "peak", "kept", "resident_begin", "resident_end", "resident_peak", "nanoseconds",
                                                    "too_deep", "frees_unknown")]


def library_path():
    from . import _inside

    path = os.path.join(os.path.dirname(_inside.probe_library()), "libmillpond_lines.so")
    if not os.path.exists(path):
        raise LinesError("millpond.profile: %s is not there; install Millpond again, or build it with `make`" % path)
    return path


class Lines:
    """The library, its hooks, and the interpreter's part: sys.monitoring from Python 3.12 on, a trace function before."""

    def __init__(self):
        try:
            library = ctypes.PyDLL(library_path())
        except OSError as error:
            raise LinesError("millpond.profile: the library cannot be loaded: %s" % error)
        pointer, number = ctypes.c_void_p, ctypes.c_int
        for name, result, arguments in (
                ("start", number, [pointer, pointer, number]), ("stop", None, []), ("small", number, []), ("add", number, [ctypes.py_object, number, number]),
                ("function", ctypes.py_object, [number]), ("open", number, [number]), ("untrace", None, []), ("here", pointer, []), ("leave_in", number, [pointer]),
                ("take", number, [pointer, ctypes.py_object, ctypes.POINTER(Line), number]), ("totals", None, [pointer, ctypes.POINTER(Totals)]),
                ("release", None, [pointer]), ("version", number, [])):
            function = getattr(library, "millpond_lines_" + name)
            function.restype, function.argtypes = result, arguments
            setattr(self, "_" + name, function)
        if self._version() != _kVersion:
            raise LinesError("millpond.profile: %s belongs to another version of Millpond; install it again" % library._name)
        self._library = library
        self._lock = threading.RLock()
        self._codes = {}  # address -> (code, number of lines): kept alive, because the library knows them by address. Two cells with the same text make equal codes
        self._started = False
        self._start_seconds = 0.0
        self._calls = 0  # outermost calls that run now, in all threads
        self._tool = None
        self.start()
        self.enter = self._function(_kEnter)
        self.leave = self._function(_kLeave)
        self._events = self._our_events() if sys.version_info >= (3, 12) else ()
        atexit.register(self._end)

    # hooks ----------------------------------------------------------------------------------------------------------

    def start(self):
        with self._lock:
            if self._started:
                return
            begin = time.perf_counter()
            code = self._start(ctypes.pythonapi._handle, _probe_below(), sys.version_info[0] * 100 + sys.version_info[1])
            if code != _kStarted:
                what = "the functions of the interpreter are" if code == _kNoPython else "malloc is"
                raise LinesError("millpond.profile: %s not to be found in this process, so lines cannot be counted; use millpond.watch" % what)
            self._started = True
            self._start_seconds = time.perf_counter() - begin

    def stop(self):
        with self._lock:
            if self._started:
                self._stop()
                self._started = False

    def aside(self):
        """The hooks go while somebody else changes the same tables, and come back: lines.aside() ... again()."""
        with self._lock:
            was = self._started
            self.stop()
        return self.start if was else lambda: None

    def _end(self):
        self.stop()
        self._give_tool()

    # lines ----------------------------------------------------------------------------------------------------------

    def _our_events(self):
        events = sys.monitoring.events
        on_line, on_begin, on_end = self._function(_kOnLine), self._function(_kOnBegin), self._function(_kOnEnd)
        return ((events.LINE, on_line), (events.PY_START, on_begin), (events.PY_RESUME, on_begin), (events.PY_THROW, on_begin),
                (events.PY_RETURN, on_end), (events.PY_YIELD, on_end), (events.PY_UNWIND, on_end))

    def _take_tool(self):
        """For the outermost call, of whatever thread. All taken: why_not() says so."""
        monitoring = sys.monitoring
        for tool in (4, 3, monitoring.PROFILER_ID):
            try:
                monitoring.use_tool_id(tool, "millpond")
            except ValueError:
                continue
            self._tool = tool
            break
        else:
            return
        for event, function in self._events:
            monitoring.register_callback(tool, event, function)
        monitoring.set_events(tool, monitoring.events.PY_THROW | monitoring.events.PY_UNWIND)  # these two are never of one code alone
        for code, _ in self._codes.values():
            self._listen(code)

    def _listen(self, code):
        events = sys.monitoring.events
        sys.monitoring.set_local_events(self._tool, code, events.LINE | events.PY_START | events.PY_RESUME | events.PY_RETURN | events.PY_YIELD)

    def _give_tool(self):
        tool, self._tool = self._tool, None
        if tool is None:
            return
        monitoring = sys.monitoring
        try:
            for code, _ in self._codes.values():
                monitoring.set_local_events(tool, code, 0)
            monitoring.set_events(tool, 0)
            for event, _ in self._events:
                monitoring.register_callback(tool, event, None)
            monitoring.free_tool_id(tool)
        except ValueError:
            pass  # somebody has freed it in our place

    def add(self, code, count):
        """Lines of this code are counted from its next call on."""
        with self._lock:
            if id(code) in self._codes:
                return
            if self._add(code, code.co_firstlineno, count):
                raise LinesError("millpond.profile: 4096 functions are profiled already, no more can be")
            self._codes[id(code)] = (code, count)
            if self._tool is not None:
                self._listen(code)

    def why_not(self):
        """A sentence where lines cannot be counted in this thread now, else None."""
        if sys.version_info >= (3, 12):
            return None if self._tool is not None else "all tool ids of sys.monitoring are taken, so lines are not counted"
        other = sys.gettrace()
        if other is None:
            return None
        name = getattr(other, "__qualname__", None) or type(other).__name__
        return "a trace function is in use (%s of %s: a debugger, or coverage), which is left as it is, so lines are not counted" % (
            name, getattr(other, "__module__", None) or type(other).__module__)

    def begin(self):
        """The outermost call of this thread begins. Returns why its lines are not counted, or None."""
        with self._lock:
            if self._events and not self._calls:
                self._take_tool()
            why_not = self.why_not()
            self.start()
            if self._open(why_not is None):
                if not self._calls:
                    self._give_tool()
                raise LinesError("millpond.profile: there is no memory for counting lines")
            self._calls += 1
        return why_not

    def end(self, traced):
        """It has ended. Returns [(code, lines)] of those that ran, and Totals."""
        return self.end_of(self._here(), traced)

    def end_of(self, here, traced):
        if traced and sys.version_info < (3, 12) and sys.gettrace() is None:  # else the program has set one of its own meanwhile
            self._untrace()
        found = []
        totals = Totals()
        self._totals(here, totals)
        with self._lock:
            for code, count in self._codes.values():
                if self._take(here, code, None, 0):
                    lines = (Line * count)()
                    self._take(here, code, lines, count)
                    found.append((code, lines))
            self._release(here)
            self._calls -= 1
            if not self._calls:
                self._give_tool()
            if not self._calls and totals.nanoseconds > _kShort * 1e9 * self._start_seconds:
                self.stop()
        return found, totals

    def here(self):
        return self._here()

    def leave_in(self, here):
        return self._leave_in(here)


def _probe_below():
    """The probe's handle where it came into this process at run time: its hooks are in the tables that ours go into."""
    from . import _inside

    session = _inside.current()
    if session is None or session.joined or not session.active:
        return None
    return ctypes.CDLL(_inside.probe_library())._handle


_lines = None
_making = threading.Lock()


def get():
    global _lines
    if _lines is None:
        with _making:
            if _lines is None:
                _lines = Lines()
    return _lines


def aside():
    """While tables and allocators are changed by somebody else, our hooks are out of them."""
    return _lines.aside() if _lines is not None else lambda: None
