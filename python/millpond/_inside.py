"""The probe comes into this process while it runs, and leaves it again.

    session = enter("run.pond")          # collector, probe and agent are up when it returns
    for epoch in range(12):
        train()
        session.mark_round("epoch", epoch)
    path = session.leave()               # nothing of ours is left but the mapped library; path is the finished run file

What it costs: while inside, one comparison for each allocation and some microseconds for each that is sampled, as under `millpond watch`; about 30 ms to
enter and as much to leave. Before and after, nothing. Needs no package besides Python itself."""

# What only a session needs is imported by it: `import millpond` is to be quick.
import os
import sys
import threading

kReadyWithin, kDoneWithin = 60, 600  # seconds; the second one writes a run file, maybe to a slow disk
_changing = threading.RLock()
_current = None
_watched_for_forks = False
_descriptors = set()  # sockets to collectors: a forked child must not keep them open


class InsideError(RuntimeError):
    """It cannot be entered; the text says why, and what to do."""


class Session:
    """One stay of the probe in this process. Made by enter() alone.

    path     the run file: being written until leave() has returned, finished after that; None in a process that is watched already
    joined   True: this process was under `millpond watch` before, and its run goes on when the session is left
    active   True until leave() has returned (in a forked child: never)
    remarks  sentences on what could not be seen or undone; complete after leave()"""

    def __init__(self, joined, path=None, collector=None):
        self.joined = joined
        self.path = path
        self.remarks = []
        self._collector = collector
        self._pid = os.getpid()
        self._left = False

    @property
    def active(self):
        return not self._left and self._pid == os.getpid()

    def mark_round(self, name="round", index=None):
        """The end of a round: the same moment of a loop, so that what is alive is compared from one to the next. Rounds of one name are one series,
        which goes before every other in the verdict. index: the number of the round, from 0; without it they are counted. From any thread; after leave() it does nothing."""
        periods = sys.modules.get("millpond_agent.periods")
        if periods is not None and self.active:
            periods.round_ends(str(name), index)

    def leave(self):
        """Undoes all that enter() did and returns the path of the finished run file (None when joined, and in a forked child). Once is enough: a second call
        returns the same path. From any thread."""
        global _current
        with _changing:
            if self._left:
                return self.path if self._pid == os.getpid() else None
            self._left = True
            if _current is self:
                _current = None
            if self.joined:
                return None
            inside = sys.modules["millpond_agent.inside"]
            self.remarks += inside.leave()
            if self._pid != os.getpid():
                return None
            import atexit

            atexit.unregister(self.leave)
            collector, self._collector = self._collector, None
            self.path, more = collector.finish(self.path)
            self.remarks += more
            return self.path

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        self.leave()


def enter(output=None, *, probes=True, native=False, follow=True, force=False, limit=None, options=()):
    """Starts the collector, brings the probe into this process and starts the agent. Returns the Session.

    output   the run file; None: run.pond, run-2.pond, ... in this folder, whatever is free
    probes   False: never gc.collect() and malloc_trim() in the program
    native   True: native frames below the Python ones too
    follow   False: forked children are left alone
    force    True: the run file is replaced if it exists
    limit    bytes, or text such as "8GiB": memory that must not be exceeded, for the forecast
    options  more words for the command line of `millpond watch`, for example ("--no-source",)

    Raises InsideError when there is a session in this process already, or something is missing; nothing is left behind then. From any thread, one at a time.
    In a process that is under `millpond watch` already the session joins that run: no second probe, no second run file."""
    global _current
    with _changing:
        if _current is not None and _current.active:
            raise InsideError("this process is being watched already (run file %s); leave that session first" % (_current.path or "of millpond watch"))
        if _preloaded():
            _current = Session(joined=True)
            return _current
        library = probe_library()
        inside = _agent().inside
        if inside.watching(library):
            raise InsideError("this process is being watched already, by `millpond watch --pid`; end that one first")
        _hear_of_forks()
        words = ["--pid", str(os.getpid()), "--inside"]
        words += ["-o", os.fspath(output)] if output is not None else []
        words += ["--limit", str(limit)] if limit is not None else []
        words += ["--native"] * bool(native) + ["--no-probes"] * (not probes) + ["--no-follow-fork"] * (not follow) + ["--force"] * bool(force)
        collector = _Collector(library, [program(), "watch"] + words + [os.fspath(word) for word in options])
        try:
            inside.enter(collector.folder, library, probes=probes, native=native, follow=follow)
        except BaseException as error:
            collector.give_up()
            if isinstance(error, inside.Problem):
                raise InsideError(str(error)) from None
            raise
        _current = Session(joined=False, path=collector.file, collector=collector)
        import atexit

        atexit.register(_current.leave)
        return _current


def current():
    """The session of this process, or None."""
    session = _current
    return session if session is not None and session.active else None


def program():
    """The path of the program `millpond`: environment MILLPOND, else beside this package, else on PATH. Raises InsideError."""
    from ._command import find_program

    found = find_program()
    if found is not None:
        return os.path.abspath(found)
    named = os.environ.get("MILLPOND")
    if named:
        raise InsideError("there is no program %s; the environment variable MILLPOND names it" % named)
    raise InsideError("the program millpond is not found: install it (pip install millpond), or let the environment variable MILLPOND name it")


def probe_library():
    """The path of libmillpond_probe.so, found from the program. Raises InsideError."""
    name = "libmillpond_probe.so"
    own = os.path.dirname(os.path.realpath(program()))
    for path in (os.path.join(own, name), os.path.join(os.path.dirname(own), "lib", "millpond", name)):
        if os.path.isfile(path):
            return path
    raise InsideError("%s is missing beside %s; install Millpond again" % (name, program()))


def agent_folder():
    """The folder that holds the agent (millpond_agent): found from the program, as `millpond watch` finds it, else beside this package."""
    for folder in (os.path.dirname(probe_library()), os.path.dirname(os.path.abspath(__file__))):
        path = os.path.join(folder, "inject")
        if os.path.isdir(os.path.join(path, "millpond_agent")):
            return path
    raise InsideError("the agent (inject/millpond_agent) is missing beside %s; install Millpond again" % program())


def _preloaded():
    import ctypes

    try:
        return ctypes.CDLL(None).millpond_probe_watching() == 1
    except AttributeError:
        return False


def _agent():
    """The agent's package, with its part for this."""
    if "millpond_agent.inside" not in sys.modules:
        folder = agent_folder()
        sys.path.insert(0, folder)
        try:
            import millpond_agent.inside  # noqa: F401
        finally:
            sys.path.remove(folder)
    return sys.modules["millpond_agent"]


def _hear_of_forks():
    global _watched_for_forks
    if not _watched_for_forks:
        _watched_for_forks = True
        os.register_at_fork(after_in_child=_forked)


def _forked():
    global _changing, _current
    _changing = threading.RLock()
    _current = None
    for end in _descriptors:
        end.close()
    _descriptors.clear()


class _Collector:
    """`millpond watch --inside`, a process that is no child of ours (src/probe/spawn.cc), and the socket to it."""

    def __init__(self, library, command):
        import ctypes
        import socket

        ours, theirs = socket.socketpair()
        self._line = ours
        self._rest = b""
        _descriptors.add(ours)
        with theirs:
            environment = [name + b"=" + value for name, value in os.environb.items() if name != b"LD_PRELOAD"]
            words = [os.fsencode(word) for word in command]
            spawn = ctypes.CDLL(library).millpond_probe_spawn
            spawn.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
            self._pid = spawn(words[0], (ctypes.c_char_p * (len(words) + 1))(*words), (ctypes.c_char_p * (len(environment) + 1))(*environment), theirs.fileno())
        if self._pid < 0:
            self._close()
            raise InsideError("%s cannot be started: %s" % (command[0], os.strerror(-self._pid)))
        answer = self._read(kReadyWithin)
        if answer is None or "folder" not in answer:
            self._close()
            raise InsideError((answer or {}).get("error") or "%s ended without a word; try `%s watch --pid %d`" % (command[0], command[0], os.getpid()))
        self.folder = answer["folder"]
        self.file = os.path.abspath(answer["file"])

    def finish(self, path):
        """The probe has left: its records are read, the run file is finished. Returns its path and remarks."""
        try:
            self._line.sendall(b"leave\n")
            answer = self._read(kDoneWithin)
        except OSError:
            answer = None
        self._close()
        if answer is None:
            return path, ["the collector ended before its run file was finished; what it had written is there"]
        if "error" in answer:
            return path, [answer["error"]]
        return path, answer["remarks"]

    def give_up(self):
        """Nothing came in: no run file either."""
        self.finish(None)
        try:
            os.unlink(self.file)
        except OSError:
            pass

    def _read(self, seconds):
        self._line.settimeout(seconds)
        while b"\n" not in self._rest:
            try:
                part = self._line.recv(65536)
            except OSError:
                return None
            if not part:
                return None
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\n")
        import json

        return json.loads(line)

    def _close(self):
        import shutil

        self._line.close()
        _descriptors.discard(self._line)
        folder = getattr(self, "folder", None)
        if folder is not None and os.path.basename(folder).startswith("millpond-"):
            shutil.rmtree(folder, ignore_errors=True)  # the collector has done so, unless it was killed
        try:
            if self._pid > 0:
                os.waitpid(self._pid, 0)  # where this process adopts orphans (the first one of a container)
        except (OSError, OverflowError):
            pass
