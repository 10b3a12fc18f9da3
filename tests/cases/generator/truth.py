"""The truth of a program, from its construction alone.

- `leak`: something without a bound kept bytes in each of the last five rounds. When it began within them, *unsure* is as good an answer.
- Growth that ended before the last five rounds is `cache` or `reserve`, and both are right: a program that stops filling a list cannot be told from one whose cache is full.
  *Flat* is right as well where it was over in the first quarter of the rounds (warm-up) or less than 8 MB.
- What something bounds is `cache` even while it still fills at the end; then *unsure* is right too, and *leak* is wrong.
- Freed memory that the allocator keeps is `retention`, pinned by survivors `fragmentation`; which of the two glibc and CPython make of it is theirs, so both are right for both.
- Everything else is `flat`; *reserve* is right for every program, because imports and first calls take memory once."""
import dataclasses

ORDER = ("flat", "reserve", "cache", "retention", "fragmentation", "leak")
SMALL = 5e6


@dataclasses.dataclass
class Leak:
    number: int
    holder: object
    item: str
    first: int
    stop: int
    bytes_per_round: object  # in the later half of its window; None: not known by construction, and then so much that it must be told
    total: object
    calls: int  # of the line that puts, in a round
    names: list
    rank: object = None


def leak_facts(leak, shape, lines, rounds):
    holder = leak.holder
    blame, born = lines("blame"), lines("born")
    return {"id": leak.number, "holder": {"kind": holder.kind, "names": leak.names, "native": holder.native}, "item": leak.item, "first_round": leak.first, "stop_round": leak.stop, "bytes_per_round": leak.bytes_per_round,
            "bytes_per_call": leak.bytes_per_round and round(leak.bytes_per_round / leak.calls), "calls_per_round": leak.calls, "total_bytes": leak.total, "blame": blame, "born": born or blame, "cause": holder.cause or None, "space": holder.space, "rank": leak.rank,
            "still": leak.stop >= rounds, "late": leak.first >= rounds - 5}


def verdicts(leaks, levels, rounds):
    """The kind and the verdicts that are right, without the leaks and with them."""
    accepted, kind, grown = {"flat", "reserve"}, "flat", 0.0
    for level in levels:
        accepted |= set(level.accepted) & ({"retention", "fragmentation", "cache", "reserve", "unsure", "flat"} if level.bytes >= 1e6 else {"cache", "reserve", "flat", "retention"})
        grown += level.bytes if "flat" not in level.accepted else 0.0
        if level.bytes >= SMALL and ORDER.index(level.kind) > ORDER.index(kind):
            kind = level.kind
    for leak in leaks:
        if leak["still"]:
            continue
        accepted |= {"cache"}
        if leak["stop_round"] > rounds - 5:
            accepted |= {"unsure", "leak"}
        if leak["total_bytes"] >= 8e6 and leak["stop_round"] > 0.25 * rounds:
            grown += leak["total_bytes"]
        if leak["total_bytes"] >= SMALL and ORDER.index(kind) < ORDER.index("cache"):
            kind = "cache"
    if grown >= 8e6:
        accepted.discard("flat")
    quiet = {"kind": kind, "accepted": sorted(accepted)}
    still = [leak for leak in leaks if leak["still"]]
    if not still:
        return quiet, quiet
    late = all(leak["late"] for leak in still)
    return {"kind": "leak", "accepted": ["leak", "unsure"] if late else ["leak"]}, quiet


def of(shape, parts, marks, pattern, python, version, layout, framework):
    leaks = []
    for index, part in enumerate(parts):
        if part.leak:
            lines = lambda what: [{"file": file, "line": line} for file, line in sorted(marks.get((what, index), []))]
            leaks.append(leak_facts(part.leak, shape, lines, shape.rounds))
    levels = [part.level for part in parts if part.level]
    told, quiet = verdicts(leaks, levels, shape.rounds)
    return {"format": "millpond generated program 1", "kind": told["kind"], "accepted": told["accepted"], "without_leaks": quiet, "leaks": leaks,
            "rounds": shape.rounds, "steps_per_round": shape.steps, "rhythm": shape.rhythm, "mark": pattern, "rounds_per_mark": shape.every or None, "seconds_per_round": round(shape.paced, 4) or None,
            "process": shape.process, "workers": shape.workers, "python": python, "version": version, "framework": framework, "layout": layout,
            "noise": sorted({part.name for part in parts if part.level}), "levels": [{"kind": level.kind, "bytes": round(level.bytes), "done_by": round(level.done_by, 1)} for level in levels], "timeout_s": 120}
