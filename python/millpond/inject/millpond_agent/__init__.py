"""The agent: what Millpond runs inside a Python program that it watches. It marks phases and periods, counts, probes and
looks for what grows. It never raises into the program, never prints, and imports no framework by itself.

python/millpond/inject/NOTES.md lists what it says."""

import os
import sys

_started = False
kStay = (__name__ + ".once", __name__ + ".inside")  # when the others go


def start(library=None, probes=None):
    """Once in a process, until stop(). Does nothing unless somebody listens: the probe's library, or a log for tests. library: the path of a probe that has come
    in while the program runs; probes: False for no gc and no trim, None as the environment says."""
    global _started
    if _started:
        return
    _started = True
    from . import link

    if not link.connect(library):
        return
    if probes is not None:
        from . import probes as probing

        probing.enabled = probes
    from . import ctypes_hooks, ending, imports, jax_hooks, keras_hooks, lines, loop_hooks, once, periods, pyplot_hooks, state, tensorflow_hooks, torch_hooks

    with state.own_work():
        if os.environ.get("MILLPOND_VARIANT"):
            from . import variants

            variants.install()  # first: its changes lie below the other wrappers
        for hooks in (keras_hooks, tensorflow_hooks, torch_hooks, jax_hooks, pyplot_hooks, loop_hooks):
            imports.add(hooks.HOOKS)
        imports.install()
        lines.install()
        if library is None:
            ctypes_hooks.install()  # a function that was looked up would outlive our stay
        ending.install()
        link.tick(periods.tick, 0.5)
        once.in_children(state.forked)
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


def stop():
    """The agent leaves a program that runs on: says what it says at the end, and puts everything back that it changed. It can be started again, and knows nothing then."""
    global _started
    if not _started:
        return
    from . import ending, imports, link, once, state, wrapping

    ending.remove()
    state.on = False
    with state.own_work():
        imports.remove()
        wrapping.undo()
        once.forget()
        link.disconnect()
    for name in [name for name in sys.modules if name.startswith(__name__ + ".") and name not in kStay]:
        module = sys.modules.pop(name)
        if globals().get(name.rpartition(".")[2]) is module:
            del globals()[name.rpartition(".")[2]]
    _started = False


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
