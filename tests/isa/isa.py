#!/usr/bin/env python3
"""Prints each inline function that was compiled both with and without special instructions; exit code 1 if there is one.

    isa.py BUILD

Files given to mp_isa_sources are compiled with AVX2 or AVX-512, and run only where the processor has them. But an inline
function (of the standard library, or a header of ours) that such a file did not inline is a symbol in its object file too,
the linker keeps one of all copies, and a machine without AVX-512 dies in what looks like std::vector. The cure: move it
out of the file, mark it always_inline, or put it into an anonymous namespace.
"""
import json
import subprocess
import sys
from pathlib import Path


def objects(build):
    """(object file, its -mavx... flags as one string) of each file of src."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words = entry["command"].split()
        output = Path(entry["directory"], words[words.index("-o") + 1])
        if output.suffix == ".o" and output.is_file() and output.is_relative_to(build / "src"):
            yield output, " ".join(sorted({w for w in words if w.startswith(("-mavx", "-mfma", "-mf16c", "-march"))}))


def shared_functions(path):
    """The weak functions an object file defines: those of which the linker keeps one copy for all."""
    text = subprocess.run(["nm", "--defined-only", "--demangle", path], capture_output=True, text=True, check=True).stdout
    return {line.split(" ", 2)[2] for line in text.splitlines() if line.split(" ", 2)[1] == "W"}


def main(build):
    kinds, special = {}, 0
    for path, flags in objects(build):
        special += bool(flags)
        for name in shared_functions(path):
            kinds.setdefault(name, {}).setdefault(flags, path)
    bad = {name: by_flags for name, by_flags in kinds.items() if len(by_flags) > 1}
    for name, by_flags in sorted(bad.items()):
        print(name)
        for flags, path in sorted(by_flags.items()):
            print(f"    {path.relative_to(build)}  {flags or '(plain)'}")
    print(f"isa: {special} files with special instructions, {len(bad)} functions shared with files of another kind")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
