"""Which code is the user's, and where in it we are. A user's line is the innermost frame outside site-packages, dist-packages, the
standard library and the agent."""

import linecache
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
_library_parts = ("/site-packages/", "/dist-packages/", "/millpond_agent/", "/lib-dynload/", "/python/millpond/")
_library = os.path.dirname(os.__file__)  # sysconfig knows it too, and takes milliseconds to import
_library_roots = tuple({os.path.join(folder, "") for folder in (_library, os.path.realpath(_library))})
kCells = 200
_frameworks = []
_known = {}
_keys = {}


def add_framework(module):
    """A package that lies in a folder of its own is a library wherever it lies."""
    file = getattr(module, "__file__", None)
    if file and os.path.basename(file).startswith("__init__"):
        _frameworks.append(os.path.join(os.path.dirname(file), ""))
        _known.clear()


def is_user_file(file):
    known = _known.get(file)
    if known is None:
        known = _known[file] = _decide(file)
    return known


def _decide(file):
    if not file or file.startswith("<"):
        return bool(file) and file.startswith("<ipython-input-")
    if any(part in file for part in _library_parts):
        return False
    full = os.path.abspath(file)
    return not full.startswith(_library_roots) and not full.startswith(tuple(_frameworks))


def cells():
    """The user's sources that are no files: cells of a notebook, the newest first. IPython gives them to linecache, without a time to compare a file with."""
    found = [name for name, entry in list(linecache.cache.items()) if len(entry) == 4 and entry[1] is None and is_user_file(name)]
    return found[:-kCells - 1:-1]


def is_user_frame(frame):
    file = frame.f_code.co_filename
    if is_user_file(file):
        return True
    # python -c, a notebook's cell: generated code of libraries has such names too, but not in __main__
    return file[:1] == "<" and file != _hidden and frame.f_globals.get("__name__") == "__main__" and not file.startswith("<frozen")


_hidden = "<millpond_agent importlib._bootstrap>"


def user_frame(depth=1):
    """The innermost frame of the user, or None."""
    frame = sys._getframe(depth + 1)
    while frame is not None:
        if is_user_frame(frame):
            return frame
        frame = frame.f_back
    return None


def function_name(frame):
    """Qualified where it can be told: 3.11 knows it, before that the class of `self` is looked up."""
    code = frame.f_code
    name = getattr(code, "co_qualname", None)
    if name is None:
        name = code.co_name
        from . import sources

        name = sources.qualified(code.co_filename, code.co_firstlineno) or name
    return name.replace(".<locals>", "")


def text(file, line):
    return linecache.getline(file, line).strip()[:200]


def place(frame):
    """{file, line, function, text} of a frame."""
    code = frame.f_code
    line = frame.f_lineno or code.co_firstlineno
    return {"file": code.co_filename, "line": line, "function": function_name(frame), "text": text(code.co_filename, line)}


def user_module(module):
    if getattr(module, "__name__", "") == "__main__":
        return True
    return is_user_file(getattr(module, "__file__", None) or "")


def user_modules():
    found = []
    for module in list(sys.modules.values()):
        try:
            if module is not None and user_module(module):
                found.append(module)
        except Exception:
            pass
    return found
