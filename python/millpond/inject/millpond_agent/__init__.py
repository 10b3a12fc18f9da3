"""The agent: what Millpond runs inside a Python program that it watches. It marks phases and periods, counts, probes and
looks for what grows. It never raises into the program, never prints, and imports no framework by itself.

python/millpond/inject/NOTES.md lists what it says."""

import os
import sys

_started = False


def start():
    """Once in a process. Does nothing unless somebody listens: the probe's library, or a log for tests."""
    global _started
    if _started:
        return
    _started = True
    from . import link

    if not link.connect():
        return
    from . import ctypes_hooks, ending, imports, jax_hooks, keras_hooks, lines, loop_hooks, periods, pyplot_hooks, state, tensorflow_hooks, torch_hooks

    with state.own_work():
        if os.environ.get("MILLPOND_VARIANT"):
            from . import variants

            variants.install()  # first: its changes lie below the other wrappers
        for hooks in (keras_hooks, tensorflow_hooks, torch_hooks, jax_hooks, pyplot_hooks, loop_hooks):
            imports.add(hooks.HOOKS)
        imports.install()
        lines.install()
        ctypes_hooks.install()
        ending.install()
        link.tick(periods.tick, 0.5)
        os.register_at_fork(after_in_child=state.forked)
        link.note(
            {
                "note": "start",
                "python": sys.version.split()[0],
                "executable": sys.executable,
                "script": _script(),
                "argv": list(getattr(sys, "argv", []) or []),
                "cwd": os.getcwd(),
            }
        )


def _script():
    """The file of __main__ as given. sys.argv is not complete yet when sitecustomize runs; the command line is."""
    words = getattr(sys, "orig_argv", None)
    if words is None:  # before 3.10
        with open("/proc/self/cmdline", "rb") as file:
            words = [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]
    skip = False
    for word in words[1:]:
        if skip:
            skip = False
        elif word in ("-c", "-m"):
            return word
        elif word in ("-W", "-X", "--check-hash-based-pycs"):
            skip = True
        elif not word.startswith("-"):
            return word
    return ""
