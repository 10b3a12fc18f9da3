"""What grows without being held by the user's code: containers of libraries, and types with ever more objects. Looked for at probes only, in
the list of all objects that gc keeps. Who holds such a container is asked of gc (each question walks all objects, so they are few)."""

import gc
import sys
import time
import types
from collections import OrderedDict, defaultdict, deque

from . import link, sizes
from .roots import Way
from .tracks import Track

kKinds = {list, dict, set, deque, OrderedDict, defaultdict}
kLengthLeast = 8
kContainersMost = 30000
kBytesLeast = 16384  # per round, to be worth asking who holds it
kQuestions = 6  # to gc in one probe
kCommon = {"list", "dict", "tuple", "set", "cell", "function", "weakref.ReferenceType", "builtin_function_or_method"}
kTypeLeast = 4096  # bytes per round: less of these is what every program makes

_lengths = {}  # id -> length at the last probe
_last_look = 0
_rising = {}  # id -> [first look, first length, rises]
_counts = {}  # name of type -> Track
_ways = {}  # id -> Way found before


def growing_types(objects, counts, rounds_since, look, most):
    """Types with more objects at each probe: rows of the note `holders`."""
    rows = []
    for kind, count in counts.items():
        if count < 16 or sizes.module_of(kind).startswith("millpond_agent"):
            continue
        name = ("%s.%s" % (sizes.module_of(kind), kind.__qualname__)).replace("builtins.", "", 1)
        track = _counts.get(name)
        if track is None:
            if len(_counts) < 8000:
                _counts[name] = Track(look, count)
            continue
        track.sees(look, count)
        added = count - track.first_size
        rounds = rounds_since(track.first_look)
        if track.rose_at == look and not track.falls and rounds > 0 and added >= max(4, rounds // 2):
            rows.append((added, kind, name, count, rounds, track))
    rows.sort(key=lambda row: -row[0])
    rows = rows[:most]
    shallow = _sample({row[1] for row in rows}, objects)
    said = [
        {"type": name, "count": count, "per_period": round(added / rounds, 3), "bytes": int(added / rounds * shallow.get(kind, 0)),
         "rises": track.rises}
        for added, kind, name, count, rounds, track in rows
    ]
    return [row for row in said if row["bytes"] >= kTypeLeast or row["type"] not in kCommon]


def _sample(kinds, objects):
    """Shallow size of one object of each type, the newest that is found soon."""
    found = {}
    for thing in objects[-1:-200001:-1]:
        kind = type(thing)
        if kind in kinds and kind not in found:
            try:
                found[kind] = sys.getsizeof(thing, 0)
            except Exception:
                link.pass_on()
                found[kind] = 0
            if len(found) == len(kinds):
                break
    return found


def growing_containers(objects, met, look, rounds_since):
    """[(container, added, rounds, rises)] that nobody met on the way from the user's code and that grew since the last probe."""
    global _lengths, _last_look
    now = {}
    result = []
    least = kLengthLeast
    for thing in [thing for thing in objects if type(thing) in kKinds and len(thing) >= least]:
        identity = id(thing)
        if identity in met:
            continue
        length = len(thing)
        if len(now) < kContainersMost:
            now[identity] = length
        before = _lengths.get(identity)
        if before is None or length <= before:
            _rising.pop(identity, None)
            continue
        track = _rising.get(identity)
        if track is None:
            track = _rising[identity] = [_last_look, before, 0]
        track[2] += 1
        rounds = rounds_since(track[0])
        if rounds > 0 and length - track[1] >= rounds // 2:
            result.append((thing, length - track[1], rounds, track[2]))
    _lengths = now
    _last_look = look
    for gone in [identity for identity in _rising if identity not in now]:
        del _rising[gone]
    own = _own_ids()
    result = [row for row in result if id(row[0]) not in own]
    result.sort(key=lambda row: -row[1])
    return result[:24]


def _own_ids():
    ids = {id(sys.modules), id(_lengths), id(_rising), id(_counts), id(_ways), id(sys.path_importer_cache)}
    cache = sys.modules.get("linecache")
    if cache is not None:
        ids.add(id(cache.cache))
    for name, module in list(sys.modules.items()):
        if name.startswith("millpond_agent"):
            for value in list(vars(module).values()):
                ids.add(id(value))
                if type(value) is dict:
                    ids.update(id(inner) for inner in list(value.values()))
    return ids


def weigh(container, added):
    """Bytes of one of the newest items."""
    from .holders import newest

    scale = sizes.Scale()
    scale.seen.add(id(container))
    weights = []
    for key, value in newest(container, added):
        size = scale.weigh(value, 400, 0.002)[0]
        if key is not None:
            size += scale.weigh(key, 50, 0.001)[0]
        weights.append(size + 8)
    if len(weights) > 1 and weights[0] > 2 * max(weights[1:]):
        weights = weights[1:]
    return sum(weights) / len(weights) if weights else 0


class Asker:
    """Asks gc who refers to a thing; a few times."""

    def __init__(self, objects):
        self.left = kQuestions
        self.end = time.thread_time() + 0.15
        self.hidden = {id(objects), id(sys._getframe())}

    def way(self, thing):
        """The Way to a thing, from the nearest step that has a name."""
        known = _ways.get(id(thing))
        if known is not None:
            return known
        steps = []
        target = thing
        self.hidden.add(id(steps))
        for _ in range(4):
            if self.left <= 0 or time.thread_time() > self.end:
                break
            self.left -= 1
            step, target = self._ask(target)
            if step is None:
                break
            steps.append(step)
            if step[0] != "item":
                break
        way = None
        for kind, name, owner, file, function in reversed(steps):
            way = Way(way, kind, name, owner, file, function, 3)
        if way is not None and len(_ways) < 1000:
            _ways[id(thing)] = way
        return way

    def _ask(self, target):
        referrers = gc.get_referrers(target)
        self.hidden.add(id(referrers))
        best = None
        for holder in referrers:
            if id(holder) in self.hidden or type(holder) is types.FrameType:
                continue
            found = _name_in(holder, target)
            if found is not None and (best is None or found[0] < best[0]):
                best = found + (holder,)
                if found[0] == 0:
                    break
        if best is None:
            return None, None
        rank, step, holder = best
        if rank == 1:  # the dictionary of something: of whom?
            self.left -= 1
            for owner in gc.get_referrers(holder):
                if id(owner) in self.hidden or owner is referrers:
                    continue
                if isinstance(owner, type):
                    return ("class", step[1], owner.__name__, None, None), owner
                if isinstance(owner, types.ModuleType):
                    return ("global", step[1], owner.__name__, getattr(owner, "__file__", None), "<module>"), owner
                if type(owner) not in (dict, list, tuple) and _dictionary(owner) is holder:
                    return ("attribute", step[1], type(owner).__name__, None, None), owner
        return step, holder


def _dictionary(thing):
    try:
        return object.__getattribute__(thing, "__dict__")
    except (AttributeError, TypeError):
        return None


def _name_in(holder, target):
    """(rank, step) of how holder refers to target. Rank 0: by name, 1: perhaps the dictionary of an object, 2: an item."""
    kind = type(holder)
    if kind is dict:
        for key, value in list(holder.items()):
            if value is target:
                if "__name__" in holder and "__builtins__" in holder:
                    return 0, ("global", str(key), str(holder["__name__"]), holder.get("__file__"), "<module>")
                if type(key) is str and key.isidentifier():
                    return 1, ("item", key, "", None, None)
                return 2, ("item", str(key) if type(key) in (int, str) else type(key).__name__, "", None, None)
        return None
    if kind is types.CellType:
        return 0, ("closure", "?", "a function", None, None)
    if kind in (list, tuple, deque, set):
        return 2, ("item", "", "", None, None)
    if isinstance(holder, type):
        return None
    values = _dictionary(holder)
    if type(values) is dict:
        for key, value in list(values.items()):
            if value is target:
                return 0, ("attribute", str(key), kind.__name__, None, None)
    for owner in kind.__mro__:
        for key, slot in list(vars(owner).items()):
            if type(slot) is types.MemberDescriptorType:
                try:
                    if slot.__get__(holder, kind) is target:
                        return 0, ("attribute", str(key), kind.__name__, None, None)
                except AttributeError:
                    pass
    return None

