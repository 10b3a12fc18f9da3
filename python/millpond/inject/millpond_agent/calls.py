"""Counted lines: how often the user's lines called what. The key of a line is its code and the place in it, so that counting
again costs a dictionary look-up."""

import sys

from . import frames, link, state

kMost = 4096
kOften = 4  # a line that did it so often may need a fix
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
                link.pass_on()
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
            row["why"] = {name: value for name, value in entry[4].items() if not name.startswith("_")}
        if entry[0] >= kOften and what in ("figure", "trace"):
            row["statement"] = _statement(key, entry)
        rows.append(row)
    link.note({"note": "lines", "calls": rows})


def _statement(key, entry):
    """What a fix of this line would change (edits.py)."""
    from . import edits

    place = entry[1]
    try:
        if key[0] == "figure":
            return edits.closing(place["file"], place["line"])
        why = entry[4] if len(entry) > 4 else {}
        made = why.get("_made")
        if why.get("literal") or why.get("object"):
            span = edits.call_at(entry[3], key[2])
            if span is None or why.get("argument") is None:
                return None
            found = edits.argument(place["file"], span, why.get("_position", 99), why["argument"])
            if found and why["literal"] and why.get("_literal") is not float:
                whole = made is not None and why.get("_literal") is int and edits.only_cast(made[0], made[1], why["argument"])
                found = found if whole else None
            return found
        found = edits.traced(*made) if made else None
        return dict(found, file=made[0]) if found else None
    except Exception:
        link.oops()
        return None
    finally:
        edits.forget()


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
