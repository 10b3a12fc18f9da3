"""Python runs this at start because `millpond watch` put its folder first on PYTHONPATH. Starts the agent, then runs the
sitecustomize that would have run without us."""


def _start_agent(here):
    import gc
    import os
    import sys

    writes = sys.dont_write_bytecode
    sys.dont_write_bytecode = False  # while our own modules are imported: compiling them anew takes a tenth of a second
    loaded, path = set(sys.modules), list(sys.path)
    library = os.path.dirname(os.__file__)
    sys.path[:] = [here] + [entry for entry in path if entry == library or entry.startswith(os.path.join(library, "lib-dynload"))]
    # Importing leaves circles behind; only ours are to go, not those that a collection of the program's would find. What is frozen already, by Python 3.12 itself or by a .pth file,
    # could not be thawed apart from what we froze: it stays, and the few circles of the start go with ours.
    frozen = gc.get_freeze_count()
    if not frozen:
        gc.freeze()
    try:
        import millpond_agent

        millpond_agent.start(loaded=loaded)
        sys.path[:] = path
        millpond_agent.make_way(loaded, library)
    except Exception:
        pass
    if not frozen or gc.isenabled():
        gc.collect()
    if not frozen:
        gc.unfreeze()
    sys.path[:] = path
    sys.dont_write_bytecode = writes


def _start():
    import gc
    import sys

    here = __file__.rpartition("/")[0]
    if sys.implementation.name == "cpython" and hasattr(gc, "freeze"):  # of PyPy, and of Pythons before 3.7, only native facts are seen
        _start_agent(here)
    # PYTHONPATH stays as it is: children of this process are watched too.
    sys.path[:] = [entry for entry in sys.path if not isinstance(entry, str) or entry.rstrip("/") != here]
    del sys.modules["sitecustomize"]
    try:
        import sitecustomize  # noqa: F401  the next one on sys.path
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        return False
    return True


_there = _start()
del _start, _start_agent
if not _there:  # as if nobody had found one: it leaves no module behind
    raise ImportError("No module named 'sitecustomize'", name="sitecustomize")
