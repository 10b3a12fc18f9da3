"""What the system or a library keeps for the life of the process, however often the agent comes and goes: at-fork functions cannot be taken back, and a function
of ctypes must live as long as somebody may call it. Each is made once and leads to the agent that is there now. This module and inside.py stay when the agent goes."""

import ctypes
import os
import sys
import threading

_call = None
_callback = None
_forked = None
_registered = False


def callback(function):
    """A C function int(void*) that calls function()."""
    global _call, _callback
    _call = function
    if _callback is None:
        _callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_called)
    return _callback


def _called(_):
    if _call is not None:
        _call()
    return 0


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
        inside.lock = threading.RLock()  # whoever held it is not there
    if _forked is not None:
        _forked()


def forget():
    global _call, _forked
    _call = _forked = None
