"""The probe and the agent come into a program that runs, and leave it again: the part of it that happens in that program. The collector is ready before, and
ends after; who starts it is python/millpond/_inside.py, or it has asked us in itself (src/watch/way_in.h)."""

import _thread
import ctypes
import os
import sys

kNative, kFollow, kPython = 1, 2, 4  # src/probe/shared.h
_problems = {
    1: "the probe is in this process already",
    2: "the probe was preloaded into this process without a collector; start it again without LD_PRELOAD",
    3: "no file can be made in %s: it is full, or may not be written",
    4: "this process has no malloc that could be watched (is it linked statically?)",
}
_left = {
    1: "another tool has changed tables of functions over ours, and those entries stay",
    2: "another tool has wrapped Python's allocators over ours; ours stay below it and only pass calls on",
    4: "a thread was stopped in the middle of our work, so 20 MiB of shared memory stay mapped",
}
lock = _thread.RLock()
_library = None


class Problem(RuntimeError):
    """Why it cannot be entered, in a sentence."""


def watching(library):
    """0: this process is not watched; 1: by a preloaded probe; 2: by one that has come in."""
    try:
        preloaded = ctypes.CDLL(None).millpond_probe_watching()
    except AttributeError:
        preloaded = 0
    return preloaded or (ctypes.CDLL(library).millpond_probe_watching() if library else 0)


def enter(folder, library, probes=True, native=False, follow=True):
    """Raises Problem; nothing is changed then."""
    global _library
    import millpond_agent

    with lock:
        try:
            holding_the_gil = ctypes.PyDLL(library)
        except OSError as error:
            raise Problem("the probe cannot be loaded: %s" % error)
        enter = holding_the_gil.millpond_probe_enter
        enter.argtypes = [ctypes.c_char_p, ctypes.c_uint32]
        result = enter(os.fsencode(folder), (kNative if native else 0) | (kFollow if follow else 0) | kPython)
        if result:
            problem = _problems.get(result, "the probe could not enter (%d)" % result)
            raise Problem(problem % folder if "%s" in problem else problem)
        _library = library
        writes = sys.dont_write_bytecode
        sys.dont_write_bytecode = False  # while our own modules are imported: compiling them anew takes a tenth of a second
        try:
            millpond_agent.start(library, probes)
        except BaseException:
            leave()
            raise
        finally:
            sys.dont_write_bytecode = writes


def leave():
    """Returns sentences on what could not be undone."""
    global _library
    import millpond_agent

    with lock:
        if _library is None:
            return []
        library, _library = _library, None
        try:
            millpond_agent.stop()
        finally:
            left = ctypes.PyDLL(library).millpond_probe_leave()
        return [text for bit, text in _left.items() if left > 0 and left & bit]


def attach(folder, library, **how):
    """For a collector that has asked us in; the answer is a file."""
    try:
        if watching(library):
            raise Problem(_problems[1])
        enter(folder, library, **how)
        _answer(folder, "enter", "ok")
    except BaseException as error:
        _answer(folder, "enter", str(error) or type(error).__name__)


def detach(folder):
    try:
        _answer(folder, "leave", "; ".join(leave()) or "ok")
    except BaseException as error:
        _answer(folder, "leave", str(error) or type(error).__name__)


def _answer(folder, what, text):
    """Whole or not at all."""
    path = os.path.join(folder, what + ".answer")
    fd = os.open(path + ".part", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, text.encode("utf-8", "replace")[:4000])
    finally:
        os.close(fd)
    os.rename(path + ".part", path)
