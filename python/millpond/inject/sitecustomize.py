"""Python runs this at start because `millpond watch` put its folder first on PYTHONPATH. Starts the agent, then runs the
sitecustomize that would have run without us."""


def _start():
    import sys

    here = __file__.rpartition("/")[0]
    writes = sys.dont_write_bytecode
    sys.dont_write_bytecode = False  # while our own modules are imported: compiling them anew takes a tenth of a second
    try:
        import millpond_agent

        millpond_agent.start()
    except Exception:
        pass
    sys.dont_write_bytecode = writes
    # PYTHONPATH stays as it is: children of this process are watched too.
    sys.path[:] = [entry for entry in sys.path if not isinstance(entry, str) or entry.rstrip("/") != here]
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401  the next one on sys.path
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        if ours is not None:
            sys.modules["sitecustomize"] = ours  # what is being imported must be there when it is done


_start()
del _start
