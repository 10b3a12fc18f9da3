#!/usr/bin/env python3
"""Writes generated programs, each with its truth, into a folder of its own below FOLDER.

  generate.py FOLDER [--seed TEXT] [--programs 500] [--from 0] [--quick]

The same seed and number give the same bytes, whatever the Python and the machine."""
import argparse
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from generator import make  # noqa: E402


def write(folder, program):
    """FOLDER/NAME/NAME.py with its modules, and NAME.json beside it, which the program does not know."""
    place = os.path.join(folder, program.name)
    os.makedirs(place, exist_ok=True)
    for name, text in program.files.items():
        with open(os.path.join(place, name), "w") as file:
            file.write(text)
    with open(os.path.join(place, program.name + ".json"), "w") as file:
        json.dump(program.truth, file, indent=1)
        file.write("\n")
    return place


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder")
    options.add_argument("--seed", default="0")
    options.add_argument("--programs", type=int, default=500)
    options.add_argument("--from", dest="first", type=int, default=0)
    options.add_argument("--quick", action="store_true", help="programs of 3 s or so, for tests")
    chosen = options.parse_args()
    for number in range(chosen.first, chosen.first + chosen.programs):
        write(chosen.folder, make(chosen.seed, number, chosen.quick))
    print(f"{chosen.programs} programs of seed {chosen.seed} in {chosen.folder}")


if __name__ == "__main__":
    main()
