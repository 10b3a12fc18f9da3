"""The agent: what Millpond runs inside a Python program that it watches. It marks phases and periods, counts, probes and
looks for what grows. It never raises into the program, never prints, and imports no framework by itself.

python/millpond/inject/NOTES.md lists what it says."""

import os
import sys

_started = False
_patterns = {name: set(getattr(sys.modules.get("re"), name, ())) for name in ("_cache", "_cache2")}  # that were compiled before us
_flags = set(getattr(getattr(sys.modules.get("re"), "RegexFlag", None), "_value2member_map_", ()))  # that were put together before us
kHighDescriptor = 250
kStay = (__name__ + ".once", __name__ + ".inside")  # when the others go


def start(library=None, probes=None, loaded=None):
    """Once in a process, until stop(). Does nothing unless somebody listens: the probe's library, or a log for tests. library: the path of a probe that has come
    in while the program runs; probes: False for no gc and no trim, None as the environment says; loaded: names of the modules that were there before us, when the program
    has not begun yet: those that only we need are then kept to ourselves."""
    global _started
    if _started:
        return
    _started = True
    if loaded is not None and "_ctypes" not in sys.modules:
        _bring_ctypes()
    from . import link

    if not link.connect(library):
        return
    if probes is not None:
        from . import probes as probing

        probing.enabled = probes
    # All of it now: what it imports leaves circles behind, and the program may count what its collections find; and what it imported later would be there for the program.
    from . import adders, cells, edits, holders, sources, survivors  # noqa: F401
    from . import children, ctypes_hooks, ending, imports, jax_hooks, keras_hooks, lines, loop_hooks, once, periods, pyplot_hooks, state, tensorflow_hooks, torch_hooks, trainer_hooks
    from . import jax_pool, tensorflow_pool, torch_pool

    variants = None
    if os.environ.get("MILLPOND_VARIANT"):
        from . import variants
    if loaded is not None:
        keep_to_ourselves(loaded)
    with state.own_work():
        hide_environment()
        children.remember()
        if variants is not None:
            variants.install()  # first: its changes lie below the other wrappers
        for hooks in (keras_hooks, tensorflow_hooks, torch_hooks, trainer_hooks, jax_hooks, pyplot_hooks, loop_hooks, children, jax_pool, tensorflow_pool, torch_pool):
            imports.add(hooks.HOOKS)
        if library is None:
            imports.add(ctypes_hooks.HOOKS)  # a function that was looked up would outlive our stay
        imports.install()
        lines.install()
        ending.install()
        link.tick(periods.tick, 0.5)
        once.in_children(children.forked)
        link.note(_facts())


def _bring_ctypes():
    """libffi, from version 3.5 on, opens its own file when it is loaded, and keeps it open. Here that descriptor gets a high number, so that the program's own have the numbers
    which they have without us."""
    free = []
    try:
        free.append(os.open("/dev/null", os.O_RDONLY))
        while free[-1] < min(kHighDescriptor, os.sysconf("SC_OPEN_MAX") - 32):
            free.append(os.dup(free[0]))
    except OSError:
        pass  # what was taken goes before ctypes wants some itself
    else:
        import _ctypes  # noqa: F401
    for descriptor in free:
        os.close(descriptor)


def _facts():
    return {
        "note": "start",
        "python": sys.version.split()[0],
        "executable": sys.executable,
        "script": _script(),
        "argv": list(getattr(sys, "argv", []) or []),
        "cwd": os.getcwd(),
    }


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


def hide_environment():
    """os.environ as without us. The process's own environment stays, and what is handed on from os.environ is completed by the probe when a
    program is started with it (src/probe/exec.cc): children are watched too."""
    shown = getattr(os.environ, "_data", None)
    if not isinstance(shown, dict) or b"MILLPOND_WATCH" not in shown:
        return
    agent = shown.get(b"MILLPOND_AGENT", b"")
    for name, ours, between in ((b"LD_PRELOAD", lambda part: part.endswith(b"/libmillpond_probe.so"), b" "), (b"PYTHONPATH", lambda part: part == agent, b":")):
        parts = shown.get(name, b"").split(between)
        if name in shown and ours(parts[0]):
            if len(parts) > 1:
                shown[name] = between.join(parts[1:])
            else:
                del shown[name]
    for name in (b"MILLPOND_WATCH", b"MILLPOND_PROBES", b"MILLPOND_NATIVE", b"MILLPOND_FOLLOW", b"MILLPOND_AGENT"):
        shown.pop(name, None)


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


def keep_to_ourselves(loaded):
    """Takes modules of the standard library that only we have imported out of sys.modules: the program imports its own, as without us, seen by whatever traces it.
    Modules in C stay: their types are to be the same for both."""
    for name in set(sys.modules) - loaded:
        module = sys.modules[name]
        if name.partition(".")[0] == __name__ or not str(getattr(module, "__file__", "")).endswith(".py"):
            continue
        del sys.modules[name]
        outer, _, inner = name.rpartition(".")
        if outer in loaded and getattr(sys.modules.get(outer), inner, None) is module:
            delattr(sys.modules[outer], inner)
    for name, before in _patterns.items():
        known = getattr(sys.modules.get("re"), name, {})
        for key in set(known) - before:
            del known[key]
    if _flags:  # of a module that was there before us: otherwise it is ours alone
        members = sys.modules["re"].RegexFlag._value2member_map_
        for value in set(members) - _flags:
            del members[value]


def make_way(loaded, library):
    """Forgets modules of the standard library that only we have imported, where the program has a module of its own by that name: it is to find its
    own. Ours stay with us."""
    script = _script()
    folders = [os.getcwd() if script in ("", "-c", "-m") else os.path.dirname(os.path.realpath(script))]
    for entry in sys.path:
        if entry == library:
            break
        if not os.path.isdir(os.path.join(entry, "millpond_agent")):
            folders.append(entry)
    ours = {name.partition(".")[0] for name in set(sys.modules) - loaded} - {"millpond_agent"}
    for name in ours:
        if any(os.path.exists(os.path.join(folder, name + end)) for folder in folders for end in (".py", "/__init__.py")):
            for module in [module for module in sys.modules if module == name or module.startswith(name + ".")]:
                del sys.modules[module]
