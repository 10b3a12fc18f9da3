"""Functions that the program has put into a table of hooks of a torch module: what these keep, they keep of every pass through the module."""

import functools

kMost = 256

_hooks = set()  # (file, first line, last line)


def add(hook):
    while isinstance(hook, functools.partial):
        hook = hook.func
    code = getattr(hook, "__code__", None) or getattr(getattr(type(hook), "__call__", None), "__code__", None)
    if code is not None and len(_hooks) < kMost:
        _hooks.add((code.co_filename, code.co_firstlineno, _last_line(code)))


def _last_line(code):
    if hasattr(code, "co_lines"):
        return max((line for _, _, line in code.co_lines() if line), default=code.co_firstlineno)
    return code.co_firstlineno + sum(step for step in code.co_lnotab[1::2] if step < 128)  # Python 3.9


def has(file, line):
    """Whether the line is of such a function."""
    return any(own == file and first <= line <= last for own, first, last in _hooks)
