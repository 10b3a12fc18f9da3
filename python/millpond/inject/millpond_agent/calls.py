"""Counted lines: how often the user's lines called what. The key of a line is its code and the place in it, so that counting
again costs a dictionary look-up."""

import sys

from . import frames, link, state

kMost = 4096
_counts = {}  # (what, id of code, place in it) -> [count, place, loop place or None, code, and more that a hook adds]
_said = 0


def count(what, depth=1):
    """Counts the user's line; returns its entry [count, place, loop, code] or None."""
    frame = frames.user_frame(depth + 1)
    if frame is None:
        return None
    key = (what, id(frame.f_code), frame.f_lasti)  # hashing a code object hashes all that is in it
    entry = _counts.get(key)
    if entry is None:
        if len(_counts) >= kMost:
            return None
        with state.own_work(apart=True):
            entry = _counts[key] = [0, frames.place(frame), _loop_of(frame), frame.f_code]  # the code keeps its id
    entry[0] += 1
    return entry


def _loop_of(frame):
    """The innermost line of the user's stack that stands in a loop: what makes the call recur."""
    from . import sources

    while frame is not None:
        if frames.is_user_frame(frame):
            try:
                if sources.in_loop(frame.f_code.co_filename, frame.f_lineno):
                    return frames.place(frame)
            except Exception:
                return None
        frame = frame.f_back
    return None


def most(what):
    """The entry of the line that did it most often."""
    best = None
    for key, entry in list(_counts.items()):
        if key[0] == what and (best is None or entry[0] > best[0]):
            best = entry
    return best


def total(what):
    return sum(entry[0] for key, entry in list(_counts.items()) if key[0] == what)


def say():
    """The note `lines`, if anything was counted since the last."""
    global _said
    everything = sorted(list(_counts.items()), key=lambda item: -item[1][0])
    now = sum(entry[0] for _, entry in everything)
    if now == _said:
        return
    _said = now
    seen = {}
    rows = []
    for key, entry in everything:
        what = key[0]
        seen[what] = seen.get(what, 0) + 1
        if seen[what] > 12:
            continue
        row = {"what": what, "count": entry[0]}
        row.update(entry[1])
        if entry[2] is not None:
            row["loop"] = entry[2]
        if len(entry) > 4:
            row["why"] = entry[4]
        rows.append(row)
    link.note({"note": "lines", "calls": rows})


def advise(what, entry, number=None):
    """The note `advice`, once for each line."""
    place = entry[1]
    mark = (what, place["file"], place["line"])
    if mark in _advised:
        return
    _advised.add(mark)
    row = {"note": "advice", "what": what, "count": number if number is not None else entry[0]}
    row.update(place)
    link.note(row)


_advised = set()
