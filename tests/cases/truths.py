"""Truths in one form, whichever of the three formats they were written in: generated programs, measured programs (README.md), programs after threads."""
import builtins
import json
import keyword
import os
import re

from environments import PEERS, SYSTEM, interpreter


def read(path):
    """A program with its truth: where it lies, what runs it, and what is right to say of it."""
    with open(path) as file:
        told = json.load(file)
    folder = os.path.dirname(os.path.abspath(path))
    case = {"name": told["name"], "program": os.path.join(folder, told["name"] + ".py"), "folder": folder}
    if "format" in told:
        return dict(told, **case)
    return dict(of_thread(told, source_of(case["program"])) if "environment" in told else of_measured(told), **case)


def source_of(path):
    with open(path) as file:
        return file.read()


def names_in(words, source):
    """The names in a sentence that says who holds: its words that are names in the program, or look like names."""
    common = {*keyword.kwlist, *dir(builtins)}
    found = [word for word in re.findall(r"[A-Za-z_][A-Za-z_0-9]*", words or "") if len(word) > 3 and word not in common and ("_" in word or re.search(rf"\b{word}\b", source))]
    return sorted(set(found)) or None


def lines_of(name, lines):
    return [{"file": name + ".py", "line": line} for line in lines]


def of_measured(told):
    """README.md's format: what was measured bare, for each unit."""
    leak = told["verdict"] == "leak"
    packages = told.get("packages", [])
    unit, marks = told.get("unit"), told.get("units_per_mark") or 1
    leaks = []
    if leak:
        blame = told.get("blame") or {}
        rates = [rate for rate in (told.get("bytes_per_unit"), told.get("kept_bytes_per_unit")) if rate]
        leaks = [{"id": 0, "holder": {"kind": told.get("holder_kind", "measured"), "names": None, "native": False}, "item": "measured", "first_round": 0, "stop_round": 0, "bytes_per_round": rates[0] * marks if rates else None,
                  "rates": {"mark": [rate * marks for rate in rates], "unit": rates, "call": [rate * told.get("units_per_call", 1) for rate in rates]}, "unit": unit, "total_bytes": None,
                  "blame": [{"file": blame["file"], "line": line} for line in (blame["line"], *blame.get("also_lines", []))] if blame else [], "born": [], "cause": told.get("cause"), "rank": None, "still": True, "late": False, "space": "host"}]
    python = "system" if "torch" in packages else "peers"
    return {"kind": told["verdict"], "accepted": [told["verdict"], *told.get("also_accept", [])], "without_leaks": None, "leaks": leaks, "rounds": None, "steps_per_round": 1, "rhythm": told.get("rhythm", ""), "mark": told.get("mark"),
            "rounds_per_mark": 1, "seconds_per_round": None, "process": "main", "workers": 1, "python": python, "version": "3.11", "framework": told.get("framework", ""), "noise": [], "timeout_s": 300, "format": "measured"}


def of_thread(told, source=""):
    """The format of tests/threads: one leak at most, lines found by their text."""
    name = told["name"]
    leaks = []
    if told["leak"]:
        total = told["bytes_per_round"] * told["rounds"] * (1 - told.get("begins_at", 0))
        leaks = [{"id": 0, "holder": {"kind": told.get("library", ""), "names": names_in(told.get("holder"), source), "native": False}, "item": "", "first_round": 0, "stop_round": told["rounds"], "bytes_per_round": told["bytes_per_round"],
                  "bytes_per_call": None, "calls_per_round": 1, "total_bytes": total, "blame": lines_of(name, told.get("lines", [])), "born": lines_of(name, told.get("born_lines", [])), "cause": told.get("cause"), "rank": None, "still": True,
                  "late": False, "space": "host"}]
    accepted = [told["kind"], *told["also"]]
    return {"kind": told["kind"], "accepted": accepted, "without_leaks": {"kind": "flat", "accepted": ["flat", "reserve", "cache", "retention", "fragmentation"]} if leaks else None, "leaks": leaks, "rounds": told["rounds"], "steps_per_round": 1,
            "rhythm": told.get("round", ""), "mark": told.get("mark"), "rounds_per_mark": None, "seconds_per_round": None, "process": told.get("process", "main"), "workers": told.get("children", 1), "python": told["environment"], "version": "",
            "framework": told.get("library", ""), "noise": [], "timeout_s": 240, "format": "thread"}


def python_of(case):
    """The interpreter of a case, or None where it or its packages are not here."""
    if case["format"] == "measured":
        return next((path for path in ((SYSTEM,) if case["python"] == "system" else (PEERS,)) if os.access(path, os.X_OK)), None)
    return interpreter(case["python"])


def below(folder):
    """All truths below a folder, however it is divided."""
    found = []
    for place, folders, files in os.walk(folder):
        folders.sort()
        found += [os.path.join(place, name) for name in sorted(files) if name.endswith(".json") and os.path.exists(os.path.join(place, name[:-5] + ".py"))]
    return found
