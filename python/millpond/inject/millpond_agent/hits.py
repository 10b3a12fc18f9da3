"""How often an instruction ran, without a trace function: since 3.11 the interpreter counts down, in the code itself, how often an instruction runs until it tries to make
a faster one of it. Here such a counter is set to its highest and read later. The instruction means the same meanwhile (it is the general form of itself), the program sees
nothing of it, and once the counter is used up the interpreter makes the fast form as it would have anyway: there is nothing to put back. It costs nothing but the fast form,
a few nanoseconds each for 4095 times."""

import ctypes
import dis
import opcode
import sys

from . import link

kFrom, kUntil = (3, 11), (3, 14)  # those that were tried; each is tried again before it is trusted
kFull = 0xFFF0  # twelve bits that count and four that say how long it waits after it failed: none
kCounted = ("CALL", "PRECALL", "LOAD_ATTR", "LOAD_METHOD", "LOAD_GLOBAL", "STORE_ATTR", "STORE_SUBSCR", "BINARY_SUBSCR", "BINARY_OP", "COMPARE_OP")
_general = {}  # opcode -> the one that counts
_plain = {}  # opcode of a fast form -> the plain one
_step = 0  # how much is counted down each time; 0: not here


def works():
    return _step > 0


def counts(plain):
    """Whether an instruction with this opcode (as dis tells it) can be counted."""
    return plain in _general


def _words(code):
    count = len(code.co_code) // 2
    words = (ctypes.c_uint16 * count).from_address(id(code) + type(code).__basicsize__)
    return words if bytes(words) == code._co_code_adaptive else None


class Counter:
    """Of one instruction of a code object: `unit` counts pairs of bytes, `plain` is its opcode."""

    __slots__ = ("code", "unit", "plain", "total", "begun", "full")

    def __init__(self, code, unit, plain):
        self.code, self.unit, self.plain = code, unit, plain
        self.total = 0
        self.begun = False
        self.full = False  # at least once it ran more often than can be counted
        self._begin()

    def _begin(self):
        words = _words(self.code)
        if words is None or self.code.co_code[2 * self.unit:2 * self.unit + 4:2] != bytes((self.plain, 0)):
            return  # an instruction has behind it what it keeps for itself, which is not shown
        now = words[self.unit] & 255
        general = _general[self.plain]
        if now != general and _plain.get(now) != self.plain:
            return  # it has not run often enough to be looked at by the interpreter, or another tool has put its own there
        words[self.unit + 1] = kFull
        words[self.unit] = (words[self.unit] & 0xFF00) | general
        self.begun = True

    def read(self):
        """How often it ran since this was made."""
        if not self.begun:
            self._begin()
            return self.total
        words = _words(self.code)
        if words is None:
            return self.total
        now, left = words[self.unit] & 255, words[self.unit + 1]
        if now == _general[self.plain] and left % _step == 0:
            self.total += (kFull - left) // _step
        elif now == _general[self.plain] or _plain.get(now) == self.plain:
            self.total += kFull // _step
            self.full = True
        self._begin()
        return self.total


def _tables():
    base = opcode._specializations if hasattr(opcode, "_specializations") else {}
    if sys.version_info >= (3, 13):
        numbers = opcode._specialized_opmap
    else:
        numbers = dis._all_opmap
    for name, forms in base.items():
        plain = opcode.opmap[name]
        if name not in kCounted or next(iter(opcode._cache_format.get(name, ())), None) != "counter":
            continue  # what has no counter behind it must not get one
        if name == "CALL" and "PRECALL" in opcode.opmap:
            continue  # 3.11: a fast form of what comes before it passes it by
        if sys.version_info >= (3, 12):
            _general[plain] = plain
        elif name + "_ADAPTIVE" in numbers:
            _general[plain] = numbers[name + "_ADAPTIVE"]
        for form in forms:
            if form in numbers:
                _plain[numbers[form]] = plain


def _proven():
    """How much is counted down each time, if it counts what happens and leaves what happens as it is; 0: it does not."""
    global _step

    def tried(into, other, n):
        into.append(n)
        other[n] = n
        if n < 0:
            into.append(0)

    for n in range(64):
        tried([], {}, n)
    calls = [part for part in dis.get_instructions(tried.__code__) if part.opname in ("LOAD_METHOD", "LOAD_ATTR")]
    stores = [part for part in dis.get_instructions(tried.__code__) if part.opname == "STORE_SUBSCR"]
    if len(calls) != 2 or len(stores) != 1:
        return 0
    for step in (16, 8):
        _step = step
        counters = [Counter(tried.__code__, part.offset // 2, part.opcode) for part in calls + stores]
        kept, other = [], {}
        for n in range(37):
            tried(kept, other, n)
        if [counter.read() for counter in counters] == [37, 0, 37] and all(counter.begun for counter in counters) and kept == list(range(37)) == list(other):
            return step
    return 0


def prepare():
    """Once; False where it cannot be done."""
    global _step
    if _general or not kFrom <= sys.version_info[:2] <= kUntil or sys.implementation.name != "cpython" or "t" in sys.abiflags:
        return works()
    try:
        _tables()
        _step = _proven()
    except Exception:
        link.pass_on()
        _step = 0
    return works()
