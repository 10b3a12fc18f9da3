#!/usr/bin/env python3
"""Refuses a wheel that would not run everywhere it says it does: check_wheel.py WHEEL. `make wheel` ends with it.

A wheel of the tag manylinux_2_34 needs the C library and nothing else, and none of its functions that came after 2.34; ours is at most 15 MB, carries no debug information,
and its page has the charts."""
import os
import re
import subprocess
import sys
import tempfile
import zipfile

MOST_BYTES = 15_000_000
NEWEST_GLIBC = (2, 34)
OF_GLIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"}
BINARIES = ("millpond/millpond", "millpond/libmillpond_probe.so", "millpond/libmillpond_count.so", "millpond/libmillpond_lines.so")
WANTED = BINARIES + ("millpond/__init__.py", "millpond/__main__.py", "millpond/_command.py", "millpond/pytest_plugin.py", "millpond/inject/sitecustomize.py")
DATA = ("share/man/man1/millpond.1", "share/bash-completion/completions/millpond", "share/zsh/site-functions/_millpond", "share/fish/vendor_completions.d/millpond.fish")


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], stdout=subprocess.PIPE, text=True, check=True).stdout


def faults_of_binary(path, name):
    """What keeps this file from running where only the C library is, as sentences."""
    faults = []
    dynamic = readelf("-d", path)
    for library in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        if library not in OF_GLIBC:
            faults.append("%s needs %s, which may not be there; it is to be linked statically" % (name, library))
    if re.search(r"\((RPATH|RUNPATH)\)", dynamic):
        faults.append("%s looks for libraries in a folder of the machine that built it (RPATH)" % name)
    for symbol, version in sorted(set(re.findall(r" UND (\S+?)@GLIBC_([0-9.]+)", readelf("--dyn-syms", path)))):
        if tuple(map(int, version.split("."))) > NEWEST_GLIBC:
            faults.append("%s calls %s, which glibc has since %s only; the tag promises %d.%d" % (name, symbol, version, *NEWEST_GLIBC))
    if re.search(r" \.(symtab|debug_info) ", readelf("-S", path)):
        faults.append("%s is not stripped" % name)
    return faults


def faults_of_wheel(path):
    faults = []
    name = os.path.basename(path)
    if not re.fullmatch(r"millpond-\d+\.\d+\.\d+-py3-none-manylinux_2_34_x86_64\.whl", name):
        faults.append("the wheel is called %s; its tag is to be py3-none-manylinux_2_34_x86_64" % name)
    size = os.path.getsize(path)
    if size > MOST_BYTES:
        faults.append("the wheel has %.1f MB; at most %.0f MB are allowed" % (size / 1e6, MOST_BYTES / 1e6))
    with zipfile.ZipFile(path) as wheel, tempfile.TemporaryDirectory() as folder:
        names = wheel.namelist()
        for wanted in WANTED:
            if wanted not in names:
                faults.append("%s is not in the wheel" % wanted)
        for wanted in DATA:
            if not any(n.endswith(".data/data/" + wanted) for n in names):
                faults.append("%s is not in the wheel" % wanted)
        for extra in names:
            if "__pycache__" in extra or extra.endswith((".pyc", ".a", ".h", ".cmake")):
                faults.append("%s does not belong into the wheel" % extra)
        for inner in names:
            with wheel.open(inner) as file:
                if file.read(4) == b"\x7fELF":
                    faults += faults_of_binary(wheel.extract(inner, folder), inner)
        if BINARIES[0] in names and b"<!-- millpond:text-only -->" in wheel.read(BINARIES[0]):
            faults.append("the report page of the program has text only; it is built with Node (make setup)")
    return faults


def main():
    if len(sys.argv) != 2:
        sys.exit("check_wheel.py WHEEL")
    faults = faults_of_wheel(sys.argv[1])
    for fault in faults:
        print("wheel: refused: " + fault, file=sys.stderr)
    if not faults:
        print("wheel: %s, %.1f MB, needs glibc %d.%d and nothing else" % (os.path.basename(sys.argv[1]), os.path.getsize(sys.argv[1]) / 1e6, *NEWEST_GLIBC))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
