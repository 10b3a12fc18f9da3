"""Millpond from Python: why does the memory of a training program grow?

    with millpond.watch() as w:      # also @millpond.watch
        train()
    w.report()

    @millpond.profile                # a function, line by line
    millpond.check(function)         # in a test: fails if it leaks
    %load_ext millpond               # in a notebook: %%millpond, %mprof

Importing it costs a millisecond: everything else is imported when it is first used."""

__all__ = ["check", "profile", "watch", "LeakError", "Report", "Unsure"]

_homes = {"watch": "_watch", "Watch": "_watch", "profile": "_profile", "check": "_check", "LeakError": "_check", "Unsure": "_check", "Report": "_report", "ReportError": "_report"}

TYPE_CHECKING = False
if TYPE_CHECKING:  # for readers of types alone
    from ._check import LeakError, Unsure, check
    from ._profile import profile
    from ._report import Report, ReportError
    from ._watch import Watch, watch


def __getattr__(name):
    home = _homes.get(name)
    if home is None:
        raise AttributeError("module 'millpond' has no attribute %r" % name)
    from importlib import import_module

    value = getattr(import_module("." + home, __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted(set(globals()) | set(_homes))


def load_ipython_extension(shell):
    from . import _notebook

    _notebook.load(shell)


def unload_ipython_extension(shell):
    from . import _notebook

    _notebook.unload(shell)
