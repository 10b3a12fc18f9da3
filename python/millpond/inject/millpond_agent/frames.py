"""Which code is the user's, and where in it we are. A user's line is the innermost frame outside site-packages, dist-packages, the
standard library and the agent."""

import os
import sys

from . import link, texts

_here = os.path.dirname(os.path.abspath(__file__))
_library_parts = ("/site-packages/", "/dist-packages/", "/millpond_agent/", "/lib-dynload/", "/python/millpond/")
_library = os.path.dirname(os.__file__)  # sysconfig knows it too, and takes milliseconds to import
_library_roots = tuple({os.path.join(folder, "") for folder in (_library, os.path.realpath(_library))})
_frameworks = []
_known = {}
_keys = {}


def add_framework(module):
    """A package that lies in a folder of its own is a library wherever it lies."""
    file = getattr(module, "__file__", None)
    if file and os.path.basename(file).startswith("__init__"):
        _frameworks.append(os.path.join(os.path.dirname(file), ""))
        _known.clear()
        _user_names[0] = -1


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


kGiven = "<string>"  # Python's name for the program of `python -c`
_given = [False, None]  # whether it was looked for, and its text


def given_program():
    """The text of the program given with -c; None for any other. Libraries make code with that name too, but not where the program is a file."""
    if not _given[0]:
        try:
            _given[:] = True, _given_text()
        except Exception:
            link.pass_on()
            _given[:] = True, None
    return _given[1]


def _given_text():
    main = sys.modules.get("__main__")
    if main is None or getattr(main, "__file__", None) is not None or getattr(main, "__spec__", None) is not None:
        return None
    words = getattr(sys, "orig_argv", None)
    if words is None:  # before Python 3.10
        with open("/proc/self/cmdline", "rb") as file:
            words = [os.fsdecode(word) for word in file.read().split(b"\0")]
    skip = False
    for at, word in enumerate(words[1:], 1):
        if skip:
            skip = False
        elif not word.startswith("-") or word == "-":
            return None
        elif not word.startswith("--"):
            for place, letter in enumerate(word[1:], 1):
                if letter == "c":
                    return word[place + 1:] or words[at + 1]
                if letter in "WX":
                    skip = place + 1 == len(word)
                    break
    return None


def has_source(file):
    """Whether it is the user's and can be read: a file, or the program given with -c."""
    return is_user_file(file) or (file == kGiven and given_program() is not None)


def text(file, line):
    if file == kGiven and given_program() is not None:
        lines = given_program().split("\n")
        return lines[line - 1].strip()[:200] if 0 < line <= len(lines) else ""
    found = texts.line(file, line).strip()[:200]
    if found:
        from . import cells

        cells.told(file, line)
    return found


def place(frame):
    """{file, line, function, text} of a frame."""
    code = frame.f_code
    line = frame.f_lineno or code.co_firstlineno
    return {"file": code.co_filename, "line": line, "function": function_name(frame), "text": text(code.co_filename, line)}


_told = {}


def told_key(key):
    """A place in a container as it may be told: a number of a list, or a key of a dictionary that stands in the user's source. Other keys are data."""
    if type(key) is int:
        return str(key)
    if type(key) is not str:
        return "..."  # any of them
    known = _told.get(key)
    if known is None:
        if len(_told) > 1000:
            _told.clear()
        known = _told[key] = repr(key)[:60] if _in_source(key) else "..."
    return known


def _in_source(key):
    if not key or len(key) > 60:
        return False
    quoted = ("'%s'" % key, '"%s"' % key, "%s=" % key, "[%s]" % key)
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    for file in [file for file in files if type(file) is str and is_user_file(file)][:64]:
        for line in texts.lines(file)[:20000]:
            if key in line and any(form in line for form in quoted):
                return True
    return False


def user_module(module):
    if getattr(module, "__name__", "") == "__main__":
        return True
    return is_user_file(getattr(module, "__file__", None) or "")


_user_names = [-1, []]  # how many modules there were, and the names of the user's among them: a large framework has thousands


def user_modules():
    if _user_names[0] != len(sys.modules):
        found = []
        for name, module in list(sys.modules.items()):
            try:
                if module is not None and user_module(module):
                    found.append(name)
            except Exception:
                link.pass_on()
        _user_names[:] = len(sys.modules), found
    modules = [sys.modules.get(name) for name in _user_names[1]]
    return [module for module in modules if module is not None]
