#!/usr/bin/env python3
"""Prints each #include of src and include that points upwards; exit code 1 if there is one.

    layers.py ROOT

Public headers (<millpond/...> or "millpond/...") may be included from everywhere. A folder may include itself and any
folder on a lower level of its own ladder; folders on the same level do not include each other.
"""
import re
import sys
from pathlib import Path

# Ladders, lowest level first. A folder sees the levels below it, in every ladder that names it.
ENGINE = ["base", "ledger plan runfile events", "graph", "ops", "passes", "backend", "runtime", "nn data io dist", "eager", "train"]
DATA = ["base", "io", "data"]  # datasets read the files of io
WATCH = ["base", "ledger runfile", "probe", "watch"]
DOCTOR = ["base", "ledger runfile events", "verdict", "report", "serve"]
LADDERS = [[level.split() for level in ladder] for ladder in (ENGINE, DATA, WATCH, DOCTOR)]
ALONE = {"probe"}  # lives in a stranger's process: includes no other folder
TOP = {"cli", "python"}  # see everything but each other
HOST = "host"  # of the backends: what those that compute on the host's processors share

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
SUFFIXES = {".h", ".cc", ".inc", ".cu", ".cuh"}


def may_see():
    """{folder: folders it may include, itself left out}"""
    seen = {}
    for ladder in LADDERS:
        below = set()
        for level in ladder:
            for folder in level:
                seen.setdefault(folder, set()).update(below)
            below.update(level)
    everything = set(seen)
    for folder in ALONE:
        seen[folder] = set()
    for folder in TOP:
        seen[folder] = set(everything)
    return seen


SEES = may_see()


def judge(source, target):
    """None if the file `source` may include `target` (both relative to src), otherwise the reason in words."""
    a, b = source.parts[0], target.parts[0]
    if a not in SEES:
        return f"the folder {a} has no place in the order; give it one in tests/layers/layers.py"
    if a == b:
        if a == "backend" and len(target.parts) > 2 and target.parts[1] != HOST:
            if len(source.parts) == 2:
                return f"backend/{target.parts[1]} is one backend, and {source.name} is for all of them"
            if source.parts[1] != target.parts[1]:
                return f"backend/{source.parts[1]} and backend/{target.parts[1]} are neighbours"
        return None
    if b == "backend" and len(target.parts) > 2:
        return f"{a} sees backends through the headers of backend, not backend/{target.parts[1]}"
    if b in SEES[a]:
        return None
    if a in ALONE:
        return f"{a} stands alone"
    if a in SEES.get(b, ()):
        return f"{b} is above {a}"
    return f"{b} is not below {a}"


def includes(path):
    """(line number, name, quoted) of each #include of the file."""
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        found = INCLUDE.match(line)
        if found:
            yield number, found[2], found[1] == '"'


def resolve(path, name, quoted, root):
    """The included file as a path relative to ROOT, as the compiler would find it, or None if it is not ours."""
    places = ([path.parent] if quoted else []) + [root / "src", root / "include"]
    for place in places:
        candidate = (place / name).resolve()
        if candidate.is_file() and candidate.is_relative_to(root):
            return candidate.relative_to(root)
    # Not written yet, or named through the root: judged by its name.
    parts = Path(name).parts
    if parts[0] in SEES and len(parts) > 1 and quoted:
        return Path("src", *parts)
    return None


def sources(folder):
    return sorted(p for p in folder.rglob("*") if p.suffix in SUFFIXES and p.is_file())


def complaints(root):
    root = root.resolve()
    for path in sources(root / "src"):
        for number, name, quoted in includes(path):
            target = resolve(path, name, quoted, root)
            if target is None or target.parts[0] == "include":
                continue
            here = path.relative_to(root)
            if target.parts[0] != "src":
                yield f'{here}:{number}: includes "{name}": {target.parts[0]} is outside src'
                continue
            if len(here.parts) < 3 or len(target.parts) < 3:
                yield f'{here}:{number}: includes "{name}": a file directly in src has no place in the order'
                continue
            reason = judge(here.relative_to("src"), target.relative_to("src"))
            if reason:
                yield f'{here}:{number}: includes "{name}": {reason}'
    for path in sources(root / "include"):
        for number, name, quoted in includes(path):
            target = resolve(path, name, quoted, root)
            if target is not None and target.parts[0] != "include":
                yield f'{path.relative_to(root)}:{number}: includes "{name}": a public header includes nothing from src'


def main(argv):
    root = Path(argv[1] if len(argv) > 1 else ".")
    found = list(complaints(root))
    for line in found:
        print(line)
    files = len(sources(root / "src")) + len(sources(root / "include"))
    print(f"layers: {files} files, {len(found)} includes point the wrong way")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
