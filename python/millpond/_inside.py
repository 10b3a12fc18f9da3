"""The probe comes into this process while it runs, and leaves it again.

    session = enter("run.pond")          # collector, probe and agent are up when it returns
    for epoch in range(12):
        train()
        session.mark_round("epoch", epoch)
    path = session.leave()               # nothing of ours is left but the mapped library; path is the finished run file

What it costs: while inside, one comparison for each allocation and some microseconds for each that is sampled, as under `millpond watch`; about 30 ms to
enter and as much to leave. Before and after, nothing. Needs no package besides Python itself."""

import os


class InsideError(RuntimeError):
    """It cannot be entered; the text says why, and what to do."""


class Session:
    """One stay of the probe in this process. Made by enter() alone.

    path     the run file: being written until leave() has returned, finished after that; None in a process that is watched already
    joined   True: this process was under `millpond watch` before, and its run goes on when the session is left
    active   True until leave() has returned (in a forked child: never)
    remarks  sentences on what could not be seen or undone; complete after leave()"""

    path = None
    joined = False
    active = False
    remarks = ()

    def mark_round(self, name="round", index=None):
        """The end of a round: the same moment of a loop, so that what is alive is compared from one to the next. Rounds of one name are one series,
        which goes before every other in the verdict. index: the number of the round; without it they are counted. From any thread; after leave() it does nothing."""
        raise NotImplementedError

    def leave(self):
        """Undoes all that enter() did and returns the path of the finished run file (None when joined, and in a forked child). Once is enough: a second call
        returns the same path. From any thread."""
        raise NotImplementedError

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
    raise NotImplementedError


def current():
    """The session of this process, or None."""
    return None


def program():
    """The path of the program `millpond`: environment MILLPOND, else beside this package, else on PATH. Raises InsideError."""
    raise NotImplementedError


def probe_library():
    """The path of libmillpond_probe.so, found from the program. Raises InsideError."""
    raise NotImplementedError


def agent_folder():
    """The folder that holds the agent (millpond_agent): beside this package, else found from the program."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "inject")
