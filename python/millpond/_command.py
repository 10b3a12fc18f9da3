"""The `millpond` command of an installed package: becomes the program that lies beside this file."""

import os
import platform
import shutil
import sys


def folder():
    """The folder of program, probe and agent, or None. In an editable installation the package has two folders, and Python's own files are in the other one."""
    package = sys.modules.get(__package__ or "millpond")
    for place in list(getattr(package, "__path__", ())) or [os.path.dirname(os.path.abspath(__file__))]:
        if os.access(os.path.join(place, "millpond"), os.X_OK) and os.path.isfile(os.path.join(place, "millpond")):
            return os.path.abspath(place)
    return None


def find_program():
    """The path of the program: what MILLPOND names, or the one beside this file, or the one on PATH; None where there is none."""
    named = os.environ.get("MILLPOND")
    if named:
        return shutil.which(named)
    beside = folder()
    return os.path.join(beside, "millpond") if beside else shutil.which("millpond")


def _missing():
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64"):
        return "Millpond runs on Linux x86-64 so far; this is %s %s." % (platform.system(), platform.machine())
    return "the program is not in %s; install the package again, or build it with `make` and run build/bin/millpond." % os.path.dirname(os.path.abspath(__file__))


def main():
    place = folder()
    if place is None:
        sys.stderr.write("millpond: %s\n" % _missing())
        return 1
    program = os.path.join(place, "millpond")
    try:
        os.execv(program, ["millpond"] + sys.argv[1:])
    except OSError as error:
        sys.stderr.write("millpond: %s does not start: %s\n" % (program, error.strerror))
        return 1
