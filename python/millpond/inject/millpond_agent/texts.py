"""Lines of source files. The agent does not read them through the program's linecache: what it keeps is the program's to see, and reading imports modules. What is
there already (cells of a notebook) is taken from it."""

import sys
import tokenize

kMost = 64  # files that are kept
_known = {}  # name -> lines


def program_cache():
    """linecache.cache of the program; empty where it has not imported that."""
    return getattr(sys.modules.get("linecache"), "cache", {})


def lines(file):
    """Empty where it cannot be read."""
    if file in program_cache():
        return sys.modules["linecache"].getlines(file)
    found = _known.get(file)
    if found is None:
        try:
            with tokenize.open(file) as handle:
                found = handle.readlines()
        except (OSError, SyntaxError, UnicodeError, ValueError):
            found = []
        if len(_known) >= kMost:
            _known.clear()
        _known[file] = found
    return found


def line(file, number):
    found = lines(file)
    return found[number - 1] if 0 < number <= len(found) else ""
