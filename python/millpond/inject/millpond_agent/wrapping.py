"""Wrapping a function so that nobody notices: name, signature and source stay (functools.wraps), exceptions pass, and
`warnings.warn(stacklevel=...)` inside it still names the caller's line: warnings skip frames of the import machinery, so
the code of wrappers carries a file name that looks like it. frames.py and ending.py know the name."""

import functools

from . import link, state

kHidden = "<millpond_agent importlib._bootstrap>"
_hidden = {}
_undo = []  # what puts everything back, in the order in which it was changed


def at_stop(function):
    """function() is called when the agent leaves a program that runs on; the last one first."""
    _undo.append(function)


def put(owner, name, original, made):
    """owner.name = made, until the agent leaves. What somebody has put over it since stays; ours below it does nothing then."""
    setattr(owner, name, made)

    def back():
        if vars(owner).get(name) is made:
            setattr(owner, name, original)

    at_stop(back)


def undo():
    while _undo:
        try:
            _undo.pop()()
        except Exception:
            link.oops()


def hide(function):
    """The same function, its code under the hidden name."""
    code = function.__code__
    replaced = _hidden.get(code)
    if replaced is None:
        replaced = _hidden[code] = code.replace(co_filename=kHidden)
    function.__code__ = replaced
    return function


def around(function, enter=None, leave=None):
    """`function` with enter(args, kwargs) -> token before it and leave(token, args, kwargs) after it, also when it raises. Neither runs
    inside the agent's own work nor in children by fork."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        try:
            on = state.on and not state.here.working
        except (AttributeError, NameError, TypeError):  # the interpreter is being taken down; not what a signal's handler raises
            on = False
        if not on:
            return function(*args, **kwargs)
        token = None
        if enter is not None:
            try:
                token = enter(args, kwargs)
            except Exception:
                link.oops()
        if leave is None:
            return function(*args, **kwargs)
        try:
            return function(*args, **kwargs)
        finally:
            try:
                leave(token, args, kwargs)
            except Exception:
                link.oops()

    wrapper.__millpond__ = True
    return hide(wrapper)


def replace(owner, name, make):
    """owner.name = make(owner.name), where there is one of its own and it is not ours yet."""
    original = vars(owner).get(name)
    if original is None:
        return
    kind = type(original)
    function = original.__func__ if kind in (staticmethod, classmethod) else original
    if getattr(function, "__millpond__", False) or not callable(function):
        return
    made = make(function)
    put(owner, name, original, kind(made) if kind in (staticmethod, classmethod) else made)


def watch(owner, name, enter=None, leave=None):
    replace(owner, name, lambda function: around(function, enter, leave))
