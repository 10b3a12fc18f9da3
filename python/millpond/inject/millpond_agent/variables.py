"""The variables of a function that runs, read where they lie. `frame.f_locals` is not for us before Python 3.13: it copies them into a
dictionary that the frame keeps, and under a trace function (a debugger, coverage) Python copies that dictionary back when the function
goes on: what the program assigned meanwhile would be lost."""

import ctypes
import sys
import types

from . import link, threads

_names = {}  # id of code -> (code, names in the order of their places)


def names_of(code):
    """The names in the order of their places in a frame."""
    known = _names.get(id(code))
    if known is None or known[0] is not code:
        own = code.co_varnames
        if sys.version_info < (3, 11):
            names = own + code.co_cellvars + code.co_freevars
        else:  # an argument that is a cell lies in its place as an argument
            names = own + tuple(name for name in code.co_cellvars if name not in own) + code.co_freevars
        if len(_names) > 2000:
            _names.clear()
        known = _names[id(code)] = (code, names)
    return known[1]


def _values(frame, count):
    """What lies in the places of a frame, `frame` itself where nothing does. Read in one call that holds the GIL: between two bytecodes of
    ours the function may return in its own thread, and its places become those of another."""
    if link.native():
        return link.locals_of(frame, _hop, _offset, count)
    return _values_of_own_thread(frame, count)


def _values_of_own_thread(frame, count):
    """The same without the probe (tests): not of functions that run in another thread."""
    for thread, step in sys._current_frames().items():
        while step is not None and thread != threads.get_ident():
            if step is frame:
                return ()
            step = step.f_back
    at = (ctypes.c_void_p.from_address(id(frame) + _hop).value if _hop else id(frame)) + _offset
    places = (ctypes.c_void_p * count).from_address(at)
    objects = (ctypes.py_object * count).from_address(at)
    return tuple(objects[i] if places[i] else frame for i in range(count))


def _items_in_place(frame):
    names = names_of(frame.f_code)
    found = []
    for name, value in zip(names, _values(frame, len(names))):
        if type(value) is types.CellType:
            try:
                value = value.cell_contents
            except ValueError:  # not assigned yet
                continue
        if value is not frame:
            found.append((name, value))
    return found


def _items_by_name(frame):
    found = []
    for name in names_of(frame.f_code):
        try:
            found.append((name, _get_var(frame, name)))
        except NameError:  # not assigned yet
            pass
    return found


def _items_of_mapping(frame):
    return list(frame.f_locals.items())  # 3.13: it reads through, and copies nothing


def _items_unknown(frame):
    return []


def _works():
    """Whether what was found is what is there: on an interpreter built in another way nothing is read at all."""
    shared = object()

    def function(argument, other=None):
        one, two = object(), argument
        there = {"argument": argument, "one": one, "two": two, "shared": shared}
        inner = lambda: (two, shared)  # noqa: E731, F841
        seen = {name: value for name, value in items(sys._getframe()) if name in there}
        del one
        return seen == there and "one" not in dict(items(sys._getframe()))

    return function(object())


_get_var = None
_hop = _offset = 0  # from the frame to its places: one pointer on the way, or none
items = _items_unknown
if sys.implementation.name == "cpython" and sys.version_info >= (3, 13):
    items = _items_of_mapping
elif sys.implementation.name == "cpython" and object.__basicsize__ == 16 and ctypes.sizeof(ctypes.c_void_p) == 8:
    if sys.version_info >= (3, 12):
        _get_var = ctypes.pythonapi.PyFrame_GetVar
        _get_var.argtypes, _get_var.restype = [ctypes.py_object, ctypes.py_object], ctypes.py_object
        items = _items_by_name
    elif sys.version_info >= (3, 9):
        if sys.version_info >= (3, 11):
            _hop, _offset = 24, 72  # PyFrameObject.f_frame; _PyInterpreterFrame.localsplus
        else:
            _offset = types.FrameType.__basicsize__ - 8  # the first of them is counted in the size
        items = _items_in_place
try:
    if not _works():
        items = _items_unknown
except Exception:
    items = _items_unknown
