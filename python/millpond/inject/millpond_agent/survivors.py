"""Who holds what survives: the probe walks over all objects from the roots, joined with the sampled blocks that are alive (src/probe/walk.h), and finds the
holders, by births. Here: when, from which roots, and what the steps of a chain are called. A walk is made in place when it is short, otherwise in a child
that the program does not see; together they take about 1 % of the time."""

import gc
import sys
import threading
import time
import types
from collections import deque

from . import frames, link, state, variables
from .roots import _lru as kCached

kInPlace = 0.05  # seconds
kPerObject = 4e-7  # seconds in place, as measured: 871,000 objects in 0.28 to 0.40 s
kShare, kStart = 0.01, 0.1  # of the time; seconds for the first ones
kTables = 0.01  # of free memory may go to the page tables of a child
kTold = 24
kFramesMost = 200
kTensorsMost = 20000

kFirst, kApart = 4, 1.5  # rounds: the first walk, and how many times as many until the next

_spent = 0.0
_last = 0  # round of the last one
_waiting = None  # what is known of the walk that a child makes: (round, kind, names of roots); nothing of the program's is kept alive by it
_refused = None  # why none is made, once it is known


def after_period(series, objects=None):
    """Tells a walk that a child has finished, and makes the next one if that is affordable. objects: gc.get_objects(), where it is there anyway."""
    global _spent, _refused
    finish()
    if _waiting is not None or not link.native() or _refused or series.count < max(kFirst, kApart * _last):
        return
    if "t" in sys.abiflags:
        _refused = "this Python is built without the GIL, and other threads would change what is walked over"
        link.note({"note": "walk", "refused": _refused})
        return
    blocks = sys.getallocatedblocks()
    seconds = kPerObject * blocks
    apart = seconds > kInPlace
    if _spent + (seconds / 4 if apart else seconds) > kStart + kShare * state.elapsed():
        return
    if apart and not _room_for_child():
        _refused = "the page tables of a child would take too much of the free memory"
        link.note({"note": "walk", "refused": _refused})
        return
    _start(series, objects, blocks, apart)


def finish():
    """Says what a child has found, if it is done."""
    global _waiting, _spent
    if _waiting is None:
        return
    done = link.walked()
    if done == 0:
        return
    (period, kind, names), _waiting = _waiting, None
    if done > 0:
        walk = link.last_walk()
        _spent += walk.ns * 1e-9 / 4  # beside the program, on a core that may be free
        _say(walk, period, kind, names, _roots()[0], True)


def _start(series, objects, blocks, apart):
    global _waiting, _spent, _last
    _last = series.count
    begin = time.thread_time()
    roots, names = _roots()
    if objects is None and not apart:
        objects = gc.get_objects()
    hidden = [roots, names, objects]
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("millpond_agent", "sitecustomize"):
            hidden += (module, vars(module))
    walk = link.walk(roots, objects, hidden, _tensors(objects), 2 * blocks + (1 << 18), apart)
    _spent += time.thread_time() - begin
    if walk is None:
        return
    if apart:
        _waiting = (int(series.count), series.kind, names)
    else:
        _say(walk, int(series.count), series.kind, names, roots, False)


def _room_for_child():
    tables = available = None
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith("VmPTE:"):
                tables = int(line.split()[1])
    with open("/proc/meminfo") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                available = int(line.split()[1])
    return tables is not None and available is not None and tables <= kTables * available


def _roots():
    """What the walk begins with: the variables of running functions, a list for each, then modules, the user's first. And what is known of the lists: function, names, where,
    addresses."""
    roots, names = [], {}
    count = 0
    for thread, frame in list(sys._current_frames().items()):
        while frame is not None and count < kFramesMost:
            if "/millpond_agent/" not in frame.f_code.co_filename and frame.f_code.co_name != "<module>":
                found = variables.items(frame)
                if found:
                    values = [value for _, value in found]
                    roots.append(values)
                    names[id(values)] = (frames.function_name(frame), [name for name, _ in found], "" if thread == threading.main_thread().ident else "another thread", [id(value) for value in values])
                    count += 1
            frame = frame.f_back
    roots += [vars(module) for module in frames.user_modules()]
    roots.append(sys.modules)
    return roots, names


def _tensors(objects):
    """Pairs of a tensor and its data, where the object does not point to it: torch. Subclasses may run code of the program's when they are asked."""
    torch = sys.modules.get("torch")
    if objects is None or getattr(torch, "nn", None) is None:
        return []
    kinds = (torch.Tensor, getattr(torch.nn, "Parameter", None))
    pairs = []
    for thing in objects:
        if type(thing) in kinds and len(pairs) < 2 * kTensorsMost:
            try:
                if thing.device.type == "cpu":
                    pairs += (id(thing), thing.data_ptr())
            except Exception:  # a tensor without storage
                pass
    return pairs


def _say(walk, period, kind, names, roots, apart):
    told = []
    for index in range(min(walk.holders, kTold)):
        holder = walk.holder[index]
        row = {"bytes": holder.bytes, "blocks": round(holder.blocks, 1), "samples": holder.samples, "items": holder.items,
               "how": ("reached", "native", "garbage")[min(holder.how, 2)], "births": list(holder.births)}
        if holder.repeats:
            row["repeats"] = holder.repeats
        row["born"] = [dict(place, bytes=size) for place, size in _born(holder)]
        steps = [(holder.steps[i].object, holder.steps[i].type.decode("utf-8", "replace")) for i in range(holder.depth)]
        row.update(_named(steps, names, roots))
        told.append(row)
    link.note({"note": "walk", "kind": kind, "period": period, "apart": apart, "seconds": round(walk.ns * 1e-9, 5), "objects": walk.objects,
               "alive": walk.alive, "reached": walk.reached, "native": walk.native, "garbage": walk.garbage,
               "from_ms": walk.first_ms, "until_ms": walk.now_ms, "holders": told})


def _born(holder):
    """Where the survivors were made: the innermost of the user's lines, most bytes first."""
    found = {}
    for stack, size in zip(holder.stacks, holder.stack_bytes):
        if stack == 0xFFFFFFFF:
            continue
        for file, line, function in link.stack(stack):
            if frames.is_user_file(file) or file == frames.kGiven:
                key = (file, line)
                found[key] = [function, found.get(key, (None, 0))[1] + size]
                break
    rows = sorted(found.items(), key=lambda item: -item[1][1])
    return [({"file": file, "line": line, "function": function, "text": frames.text(file, line)}, size) for (file, line), (function, size) in rows[:3]]


def _named(steps, names, roots):
    """The chain in words, from the holder to its root, and the holder itself, looked up step by step from the root: only what is still there is touched."""
    if not steps:
        return {"type": None, "chain": []}
    objects = [None] * len(steps)
    top = len(steps) - 1
    if steps[top][0] not in names:
        objects[top] = next((root for root in roots if id(root) == steps[top][0]), None)
    elif top > 0:
        top -= 1
        objects[top] = next((value for root in roots if type(root) is list for value in root if id(value) == steps[top][0]), None)
    while top > 0 and objects[top] is not None:
        objects[top - 1] = _below(objects[top], steps[top - 1][0])
        top -= 1
    words = []
    for at, (address, kind) in enumerate(steps):
        above = steps[at + 1][0] if at + 1 < len(steps) else None
        if above in names:
            words.append(_variable(names[above], address))
        elif above is None:
            words.append("variables of %s" % names[address][0] if address in names and at == 0 else "" if address in names else _root_words(objects[at], kind))
        elif objects[at] is None or objects[at + 1] is None:
            words.append(kind)
        else:
            words.append(_edge(objects[at + 1], objects[at], objects[at + 2] if at + 2 < len(steps) else None))
    row = {"type": steps[0][1], "chain": [word for word in words if word][:10]}
    if objects[0] is not None:
        length, bounded = _size(objects[0])
        row.update({"length": length, "bounded": bounded, "module": getattr(type(objects[0]), "__module__", None)})
    return row


def _variable(known, address):
    function, names, where, addresses = known
    name = names[addresses.index(address)] if address in addresses else "?"
    return "local %s of %s%s" % (name, function, " in %s" % where if where else "")


def _size(thing):
    kind = type(thing)
    if kind in (list, dict, set, frozenset, tuple, bytearray, deque) or (issubclass(kind, (list, dict, set, deque)) and kind.__len__ in (list.__len__, dict.__len__, set.__len__, deque.__len__)):
        return len(thing), getattr(thing, "maxlen", None) if issubclass(kind, deque) else None
    if kind is kCached:
        info = thing.cache_info()
        return info.currsize, info.maxsize
    return None, None


def _below(parent, wanted):
    """What `parent` refers to directly and has this address; None: no more."""
    if type(parent) in (list, tuple, deque, set, frozenset):
        return next((value for value in list(parent) if id(value) == wanted), None)
    found = next((value for value in gc.get_referents(parent) if id(value) == wanted), None)
    if found is None and type(parent).__module__ == "numpy" and type(parent).__name__ == "ndarray":
        base = parent.base
        found = base if id(base) == wanted else None
    return found


def _edge(parent, child, above):
    """How parent holds child, in words; empty for a step that a person does not see."""
    kind = type(parent)
    if kind is dict:
        key = next((key for key, value in dict.items(parent) if value is child), None)
        name = parent.get("__name__") if "__spec__" in parent or "__builtins__" in parent else None
        if type(name) is str and type(key) is str:
            return "global %s of %s" % (key, name)
        if parent is sys.modules:
            return ""
        if above is not None and _own(above) is parent and type(key) is str:
            return "attribute %s of %s" % (key, type(above).__name__)
        if issubclass(type(above), type) and type(key) is str:
            return "class attribute %s of %s" % (key, above.__name__)
        return "item %s of dict" % frames.told_key(key) if key is not None else "a key of dict"
    if kind in (list, tuple, set, frozenset, deque):
        if type(above) is types.FunctionType:
            if above.__defaults__ is parent:
                names_there = above.__code__.co_varnames[: above.__code__.co_argcount]
                at = next(index for index, value in enumerate(parent) if value is child)
                return "default of argument %s of %s" % (names_there[len(names_there) - len(parent) + at], above.__qualname__)
            if above.__closure__ is parent:
                at = next(index for index, value in enumerate(parent) if value is child)
                return "variable %s in the closure of %s" % (above.__code__.co_freevars[at], above.__qualname__)
        return "an item of %s" % kind.__name__
    if kind is types.CellType:
        return ""
    if kind is types.FunctionType:
        if parent.__defaults__ is child or parent.__closure__ is child or parent.__dict__ is child:
            return ""
        if parent.__globals__ is child:
            return "the globals of function %s" % parent.__qualname__
        return "function %s" % parent.__qualname__
    if kind is types.MethodType:
        return "method %s" % parent.__func__.__qualname__ if hasattr(parent.__func__, "__qualname__") else "a method"
    if issubclass(kind, types.ModuleType) or (issubclass(kind, type) and type(child) is dict):
        return ""
    if _own(parent) is child:
        return ""
    attribute = _attribute(parent, child)
    return "attribute %s of %s" % (attribute, type(parent).__name__) if attribute else "held by %s" % type(parent).__name__


def _own(thing):
    """The dictionary of an object's attributes, without running anything of its class; None: it has none."""
    if not type(thing).__dictoffset__:
        return None
    try:
        own = object.__getattribute__(thing, "__dict__")
    except Exception:
        return None
    return own if type(own) is dict else None


def _attribute(parent, child):
    """The name of an attribute that is this very object."""
    for name, value in dict.items(_own(parent) or {}):
        if value is child and type(name) is str:
            return name
    for kind in type(parent).__mro__:
        for name, member in list(vars(kind).items()):
            if type(member) is types.MemberDescriptorType:
                try:
                    if member.__get__(parent) is child:
                        return name
                except AttributeError:  # not set
                    pass
    return None


def _root_words(thing, kind):
    if thing is sys.modules:
        return "modules"
    if type(thing) is dict and type(thing.get("__name__")) is str:
        return "module %s" % thing["__name__"]
    return kind
