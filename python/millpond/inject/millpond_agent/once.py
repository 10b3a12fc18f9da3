"""What must live as long as the process, however often the agent comes and goes: at-fork functions cannot be taken back, and the interpreter may come late to a call that
the probe has asked of it. Each is made once and leads to the agent that is there now. This module and inside.py stay when the agent goes."""

import _thread
import os
import sys

_call = None
_forked = None
_registered = False


def tick_of(function):
    """A function that calls function() until forget(); always the same one."""
    global _call
    _call = function
    return _tick


def _tick():
    if _call is not None:
        _call()


def in_children(function):
    """function() is called in every child by fork; None: no more."""
    global _forked, _registered
    _forked = function
    if not _registered and function is not None:
        _registered = True
        from . import link

        os.register_at_fork(after_in_child=link.untraced(_in_child))  # a trace function of the program does not see it


def _in_child():
    inside = sys.modules.get(__package__ + ".inside")
    if inside is not None:
        inside.lock = _thread.RLock()  # whoever held it is not there
    if _forked is not None:
        _forked()


def forget():
    global _call, _forked
    _call = _forked = None
