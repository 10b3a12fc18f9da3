"""What grows and who holds it. Each look at what the user's code holds (roots.py) gives sizes by way; a way whose size rose from look to
look and never fell is a growing holder. What grows is weighed by a few of its newest items, and the line that adds to it is sought
in the source (adders.py)."""

import sys
import time
from collections import deque
from itertools import islice

from . import calls, frames, link, module_hooks, puts, roots, sizes, strays, threads
from .referents import referents
from .tracks import Track

kMost = 8
kTypesMost = 12
kFullLeast = 16e6  # bytes of a container that has reached its own limit
kUnknownLeast = 1 << 18  # bytes per round of a container that nobody is known to hold
kTracked = 8000
kCacheLink = 80  # bytes of what a bounded functools cache keeps for each entry beside key and result
kObjectsFew = 150000  # up to here containers of libraries are looked at in every probe; otherwise when the program grows
lock = threads.Lock()  # one look at a time

_looks = []  # counts of all series at each look
_tracks = {}  # key of way -> Track
_last_note = None
_walk_seconds = 0.03


def own_bytes():
    """About what the agent keeps."""
    code = 2_800_000  # the agent and the modules it imports, measured
    return sum(sys.getsizeof(part) for part in (_tracks, _looks)) + len(_tracks) * 300 + code


def scan(objects=None, types=None, grew=False):
    """One look. At probes with all that gc knows, how many there are of each type, and whether the program grew since the probe before."""
    global _last_note
    from . import periods

    lead = periods.leader()
    if lead is None:
        return
    _looks.append(periods.counts())
    look = len(_looks) - 1
    walk = roots.Walk(_walk_seconds)
    found = walk.run(objects, types)
    rising = []
    for item in found:
        if item.size < 2:
            continue
        key = item.way.key()
        track = _tracks.get(key)
        if track is None:
            if len(_tracks) >= kTracked:
                _forget(look)
            if len(_tracks) < kTracked:
                _tracks[key] = Track(look, item.size)
            continue
        if track.last_look == look:  # two ways of the same name
            continue
        if track.sees(look, item.size):
            rising.append((item, track))
    for key, item in _groups(found, walk).items():
        track = _tracks.get(key)
        if track is None and len(_tracks) < kTracked:
            _tracks[key] = Track(look, item.size)
        elif track is not None and track.sees(look, item.size):
            rising.append((item, track))
    full = [item for item in found if _limit(item) == item.size > 1][:8]
    try:
        _last_note = _report(rising, walk, lead, look, objects, types, grew)
        _last_note["containers"].extend(_full(full, walk, {id(item.thing) for item, _ in rising}))
    finally:
        del found, rising, walk, full
        if "millpond_agent.edits" in sys.modules:
            sys.modules["millpond_agent.edits"].forget()


def _limit(item):
    """How many items the container takes by itself: deque(maxlen=...), lru_cache(maxsize=...)."""
    if item.kind == "lru_cache":
        return item.thing.cache_info().maxsize
    return item.thing.maxlen if isinstance(item.thing, deque) else None


def _full(items, walk, told):
    """Rows of heavy containers that had filled before anybody looked. They do not grow."""
    rows = []
    for item in items:
        if id(item.thing) in told:
            continue
        each = _weigh_cache(item.thing) if item.kind == "lru_cache" else _weigh_items(item.thing, item.size, item.way, walk)[1]
        if each * item.size >= kFullLeast:
            row = _describe(item, item.size, Track(0, 0), item.size, walk)
            row.pop("_key")
            row.update({"per_period": 1.0, "bytes_per_period": int(each), "still": False, "full": True})
            rows.append(row)
    return rows


def _groups(found, walk):
    """Lists in a dictionary of lists, each of which grows now and then: together they are one thing that grows at every look."""
    groups = {}
    for item in found:
        if item.kind == "container" and item.way.kind == "item" and walk.share_entered(item.way) == 1:
            groups.setdefault(item.way.key(any_item=True), []).append(item)
    result = {}
    for key, items in groups.items():
        if len(items) > 1:
            longest = max(items, key=lambda item: item.size)
            result[key + "/all"] = roots.Found(longest.thing, longest.way, "group", sum(item.size for item in items))
    return result


def _forget(look):
    """Room for new ways: those not met for two looks go."""
    for key in [key for key, track in _tracks.items() if track.last_look < look - 1]:
        del _tracks[key]


def _rounds(lead, first, last):
    key = (lead.kind, lead.name)
    return max(_looks[last].get(key, 0) - _looks[first].get(key, 0), 0)


def _report(rising, walk, lead, look, objects, types, grew):
    rows = []
    alike = {}  # lists in a dictionary of lists: [how many, items they gained together, items each round of all, also of those too new for a track]
    for item, track in rising:
        rounds = _rounds(lead, track.first_look, look)
        if rounds <= 0 or track.rises < min(look - track.first_look, 2 if item.kind in ("container", "group") else 3):
            continue  # sizes that vary rise by chance now and then
        added = item.size - track.first_size
        key = item.way.key(any_item=True)
        if item.kind == "group" and key in alike:
            alike[key][2] = added / rounds
            continue  # told by those that rose each time
        group = alike.setdefault(key, [0, 0, 0])
        group[0] += 1
        group[1] += added
        rows.append((added, item, track, rounds))
    # weigh those that gained most items, and arrays, which tell their bytes themselves
    rows.sort(key=lambda row: -row[0])
    chosen = rows[:24] + [row for row in rows[24:] if row[1].kind not in ("container", "group")][:8]
    result = []
    end = time.thread_time() + 0.08
    for added, item, track, rounds in chosen:
        if time.thread_time() > end:
            break
        group = alike[item.way.key(any_item=True)]
        if not group[0]:
            continue  # told with one like it
        try:
            row = _describe(item, added, track, rounds, walk)
            if group[0] > 1 or group[2] > 1.2 * row["per_period"]:
                _speak_for_all(row, group, added, walk.share_entered(item.way))
            group[0] = 0
        except Exception:
            link.oops()
            continue
        if row is not None:
            result.append(row)
    result.extend(_registries(lead, look))
    kinds = _last_types
    if objects is not None:
        kinds = strays.growing_types(objects, types, lambda first: _rounds(lead, first, look), look, kTypesMost)
        if len(objects) < kObjectsFew or grew:
            _last_strays[:] = _strays(objects, walk, lead, look)
    result.extend(dict(row) for row in _last_strays)  # between probes as they were at the last
    result.sort(key=lambda row: -row["bytes_per_period"])
    result = _without_inner(result)[:kMost]
    for row in result:
        row.pop("_key", None)
    return {"note": "holders", "kind": lead.kind, "period": int(lead.count), "looks": look + 1, "containers": result, "types": _types_said(kinds)}


def _speak_for_all(row, group, added, share):
    """The row of one becomes that of all like it."""
    factor = max(group[1] / max(added, 1) / share, group[2] / max(row["per_period"], 1e-3))
    row["per_period"] = round(row["per_period"] * factor, 3)
    row["bytes_per_period"] = int(row["bytes_per_period"] * factor)
    row["exact"] = False
    row["alike"] = int(round(group[0] / share))
    row["holder"] = _of_all(row["holder"])


def _of_all(holder):
    head, bracket, _ = holder.partition("[")
    return head + ("[...]" if bracket else "")


_last_types = []
_last_strays = []


def _types_said(rows):
    global _last_types
    _last_types = rows
    return rows


def _strays(objects, walk, lead, look):
    """Growing containers that only libraries hold, where what they gain is worth speaking of."""
    from . import adders

    rows = []
    heavy = []
    for thing, added, rounds, rises in strays.growing_containers(objects, walk.way_of, look, lambda first: _rounds(lead, first, look)):
        size = strays.weigh(thing, added) * added / rounds
        if size >= strays.kBytesLeast:
            heavy.append((size, thing, added, rounds, rises))
    heavy.sort(key=lambda row: -row[0])
    asker = strays.Asker(objects)
    asker.hidden.update((id(heavy), id(rows)))
    for row in heavy[:4]:
        asker.hidden.add(id(row))
    for size, thing, added, rounds, rises in heavy[:4]:
        way = asker.way(thing)
        if way is None and size < kUnknownLeast:
            continue
        found = roots.Found(thing, way or roots.Way(None, "object", "", type(thing).__name__), "container", len(thing))
        place = adders.find_line(way, thing) if way is not None else None
        item = next(iter(newest(thing, added)), (None, None))[1]
        row = {"type": type(thing).__name__, "length": len(thing), "per_period": round(added / rounds, 3), "item_type": _type_of(item),
               "bytes_per_period": int(size), "exact": False, "holder": _holder(found.way), "chain": _chain(found, found.way),
               "rises": rises, "still": True, "bounded": getattr(thing, "maxlen", None), "library": True, "_key": "stray:%d" % id(thing)}
        row.update(place or {"file": None, "line": None, "function": None, "text": None, "found_by": None})
        rows.append(row)
    return rows


_registered = {}  # name -> [(look, size)]


def add_registry(name, size, whats):
    """Something of a library that keeps what the user's lines make: size() -> number, whats: counted lines that may have filled it."""
    _registered[name] = [size, whats, []]


def _registries(lead, look):
    rows = []
    for name, (size, whats, sizes_seen) in list(_registered.items()):
        try:
            now = size()
        except Exception:
            link.pass_on()
            continue
        sizes_seen.append((look, now))
        # what a framework registers while it is imported is no growth: compare from the second round on
        first = next((pair for pair in sizes_seen if _looks[pair[0]].get((lead.kind, lead.name), 0) >= 2), None)
        if first is None or now <= first[1] or (len(sizes_seen) > 1 and now < sizes_seen[-2][1]):
            continue
        rounds = _rounds(lead, first[0], look)
        entries = [entry for entry in (calls.most(what) for what in whats) if entry is not None and entry[0] > 1]
        if rounds < 1 or not entries:
            continue
        place = max(entries, key=lambda entry: entry[0])
        row = {"type": name, "length": now, "per_period": round((now - first[1]) / rounds, 3), "item_type": None, "bytes_per_period": 0,
               "exact": False, "holder": name, "chain": ["%s of %d" % (name, now)], "rises": len(sizes_seen) - 1, "still": True, "bounded": None,
               "_key": "registry:" + name}
        row.update(place[2] or place[1])
        row["found_by"] = "count"
        rows.append(row)
    return rows


def _without_inner(rows):
    """A list inside a growing list is told by the outer one; a dictionary that has all its keys, by the lists in it that go on."""

    def within(inner, outer):
        return inner["_key"] != outer["_key"] and inner["_key"].startswith(outer["_key"] + "/")

    full = [row for row in rows if not row["still"] and any(other["still"] and within(other, row) for other in rows)]
    rows = [row for row in rows if row not in full]
    return [row for row in rows if not any(within(row, other) for other in rows)]


def _describe(item, added, track, rounds, walk):
    from . import adders  # here, because it imports ast: not for programs in which nothing grows

    thing, way = item.thing, item.way
    per_period = added / rounds
    bounded = None
    exact = False
    item_type = None
    if item.kind in ("container", "group"):
        item_type, each, exact = _weigh_items(thing, added, way.parent if way.kind == "inside" else way, walk)
        size = per_period * each
        kind = type(thing).__name__
        exact = exact and item.kind == "container"
        if isinstance(thing, deque):
            bounded = thing.maxlen
        length = item.size
    elif item.kind == "lru_cache":
        kind, length, bounded = "lru_cache", item.size, thing.cache_info().maxsize
        size = per_period * _weigh_cache(thing)
    elif item.kind == "array":
        kind, length, size, exact = type(thing).__name__, item.size, per_period, True
    elif item.kind == "graph":
        kind, length, item_type = "chain of tensors", item.size, "Tensor with grad_fn"
        total, _ = sizes.Scale().weigh(thing)
        size = per_period * total / max(item.size, 1)
    else:
        kind, length, item_type = "chain", item.size, way.owner
        size = per_period * _weigh_chain(thing, way.name)
    row = {
        "type": kind,
        "length": length,
        "per_period": round(per_period, 3),
        "item_type": item_type,
        "bytes_per_period": int(size),
        "exact": exact,
        "holder": _holder(way),
        "chain": _chain(item, way),
        "rises": track.rises,
        "still": track.rose_at == track.last_look,
        "bounded": bounded,
        "_key": way.key(),
    }
    if item.kind == "group":
        row["holder"] = _of_all(row["holder"])
    if item.kind == "array":
        row["step"] = track.step
    place = adders.find_line(way, thing)
    if place is None and item.kind == "lru_cache":
        place = adders.made_at(getattr(thing, "__wrapped__", None))
    if place is None:
        place = puts.line_of(thing)
    row.update(place or {"file": None, "line": None, "function": None, "text": None})
    row["found_by"] = place.get("found_by") if place else None
    if place and module_hooks.has(place["file"], place["line"]):
        row["hook"] = True
    _tell_kinds(row, item, added, way, place)
    return row


def _tell_kinds(row, item, added, way, place):
    """What a fix has to know: `of`, the type in full; `items`, what is kept; `statement`, what adds it; `held_in`, the library's object around it."""
    from . import adders, edits

    thing = item.thing
    row["of"] = sizes.full_name(type(thing))
    if item.kind in ("container", "group"):
        row["items"] = edits.kind_of_all([value for _, value in newest(thing, added)])
    elif item.kind == "array" and row["of"] == "numpy.ndarray":
        row["items"] = {"family": "array", "dimensions": int(thing.ndim), "elements": int(thing.itemsize)}
    if item.kind == "lru_cache":
        row["statement"] = edits.caching(place["file"], place["line"]) if place else None
    else:
        row["statement"] = adders.statement(way, place)
    while way is not None and way.kind in ("item", "chain"):
        way = way.parent
    if way is not None and way.kind in ("attribute", "inside") and way.library > 0:
        row["held_in"] = way.of


def newest(thing, added):
    """Some of the newest items, [(key or None, item)], without running anything of the user's classes."""
    kind = type(thing)
    added = int(max(1, added))
    if issubclass(kind, dict):
        pairs = list(islice(reversed(dict.items(thing)), min(added, 64)))
        return pairs[:: max(1, len(pairs) // 6)][:6]
    if issubclass(kind, (list, deque)):
        base = list if issubclass(kind, list) else deque
        size = base.__len__(thing)
        step = max(1, min(added, size) // 6)
        return [(None, base.__getitem__(thing, size - 1 - index)) for index in range(0, min(added, size), step)][:6]
    items = sizes.ring_items(thing)
    if items is not None:
        return [(None, value) for value in items[: -min(added, len(items)) - 1 : -1][:6]]
    base = set if issubclass(kind, set) else frozenset
    return [(None, value) for value in islice(base.__iter__(thing), 6)]


def _weigh_items(thing, added, way, walk):
    """(type of items, bytes of one, all were measured)."""

    def shared(identity):
        """Whether something else of the program's holds it. An object of the user's own types is a place to begin a walk, and holds nothing by that."""
        other = walk.way_of.get(identity)
        if other is None:
            return False
        while other is not way:
            if other.parent is None:
                return other.kind != "object"
            other = other.parent
        return False

    scale = sizes.Scale(shared)
    scale.seen.add(id(thing))
    own = sizes.own_of_item(thing)
    weights = []
    complete = True
    names = []
    for key, value in newest(thing, added):
        name = type(value).__name__
        if name == "tuple":
            inner = next((part for part in value if sizes.array_bytes(part) is not None), None)
            if inner is not None:
                name = "tuple of %s" % _type_of(inner)
        else:
            name = _type_of(value)
        names.append(name)
        size, whole = scale.weigh(value)
        if key is not None:
            size += scale.weigh(key)[0]
        weights.append(size + own)
        complete = complete and whole
    if not weights:
        return None, 0, False
    # The newest may weigh more (what all items share is counted with it) or less (a variable of the loop still holds it too).
    if len(weights) > 1 and (weights[0] > 2 * max(weights[1:]) or weights[0] < 0.5 * min(weights[1:])):
        rest = weights[1:]
    else:
        rest = weights
    return max(set(names), key=names.count), sum(rest) / len(rest), complete and len(weights) >= added


def _type_of(value):
    name = type(value).__name__
    if sizes.module_of(type(value)).startswith("torch") and getattr(value, "grad_fn", None) is not None:
        return "Tensor with grad_fn"
    return name


def _weigh_cache(thing):
    """Bytes of one entry: of an unbounded cache in its dictionary; a bounded one refers to keys and results itself, and its dictionary to links that say nothing."""
    info = thing.cache_info()
    scale = sizes.Scale()
    parts = referents(thing)
    table = next((part for part in parts if type(part) is dict and len(part) == info.currsize), None)
    if info.maxsize is None and table is not None:
        weights = [scale.weigh(value)[0] + scale.weigh(key)[0] for key, value in newest(table, 8)]
        return sum(weights) / len(weights) + sizes.own_of_item(table) if weights else 100
    entries = [part for part in parts if part is not table and part is not getattr(thing, "__wrapped__", None) and not isinstance(part, type)]
    some = entries[:: len(entries) // 32 | 1]  # odd: keys and results take turns
    own = (sizes.own_of_item(table) if table is not None else 0) + kCacheLink
    return sum(scale.weigh(part)[0] for part in some) / max(1, len(some)) * len(entries) / max(1, info.currsize) + own


def _weigh_chain(node, key):
    """Bytes of one link: a few of the first ones, each without the next."""
    scale = sizes.Scale()
    weights = []
    for _ in range(8):
        following = node[key] if type(node) is tuple else getattr(node, key, None)
        scale.seen.add(id(following))
        scale.seen.discard(id(node))
        weights.append(scale.weigh(node)[0])
        if type(following) is not type(node):
            break
        node = following
    return sum(weights) / len(weights)


def _holder(way):
    """A short name: Runner.trajectories, models"""
    parts = []
    step = way
    while step is not None and step.kind in ("item", "chain", "inside"):
        if step.kind != "inside":
            parts.append("[%s]" % frames.told_key(step.name) if step.kind == "item" else ".%s" % step.name)
        step = step.parent
    tail = "".join(reversed(parts))
    if step is None:
        return tail
    if step.kind in ("attribute", "class"):
        return "%s.%s%s" % (step.owner, step.name, tail)
    if step.kind == "object":
        return "%s%s" % (step.owner, tail)
    return "%s%s" % (step.name, tail)


def _chain(item, way):
    words = ["%s of %d" % (type(item.thing).__name__ if item.kind != "chain" else "chain", item.size)]
    while way is not None and len(words) < 8:
        words.append(way.words())
        way = way.parent
    return words


def say(final=False):
    note = _last_note
    if note is None:
        return
    if final:
        note = dict(note, final=True)
    elif not note["containers"]:
        return
    link.note(note)
