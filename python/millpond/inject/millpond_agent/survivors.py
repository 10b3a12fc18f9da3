"""Who holds what survives: the probe walks over all objects from the roots, joined with the sampled blocks that are alive (src/probe/walk.h), and finds the
holders, by births. Here: when, from which roots, and what the steps of a chain are called. A walk is made in place when it is short, otherwise in a child
that the program does not see; together they take about 1 % of the time."""

import gc
import sys
import time
import types
from collections import deque
from itertools import islice

from . import chains, frames, link, puts, state, threads, unsaid, variables
from .roots import Walk

kInPlace = 0.05  # seconds
kPerObject = 4e-7  # seconds in place, as measured: 871,000 objects in 0.28 to 0.40 s
kShare, kStart = 0.01, 0.1  # of the time; seconds for the first ones
kTables = 0.01  # of free memory may go to the page tables of a child
kTold = 24
kFramesMost = 200
kTensorsMost = 20000
kLook = 0.03  # seconds, for the user's own containers where not all objects are gone through

kFirst = 4  # rounds until the first walk
kApart, kCheap, kCheapApart = 1.5, 0.02, 1.15  # how many times as many rounds until the next; after one that took fewer seconds

_spent = 0.0
_charged = 0.0  # for the last one
_last = 0  # round of the last one
_waiting = None  # what is known of the walk that a child makes: (round, kind, names of roots); nothing of the program's is kept alive by it
_refused = None  # why none is made, once it is known


def is_due(series):
    return _waiting is not None or (not _refused and series.count >= max(kFirst, (kCheapApart if _charged < kCheap else kApart) * _last))


def after_period(series, objects=None):
    """Tells a walk that a child has finished, and makes the next one if that is affordable. objects: gc.get_objects(), where it is there anyway."""
    global _spent, _refused
    finish()
    if _waiting is not None or not link.native() or not is_due(series):
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
    global _waiting, _spent, _charged
    if _waiting is None:
        return
    done = link.walked()
    if done == 0:
        return
    (period, kind, names), _waiting = _waiting, None
    if done > 0:
        walk = link.last_walk()
        _charged += walk.ns * 1e-9 / 4  # beside the program, on a core that may be free
        _spent += walk.ns * 1e-9 / 4
        _say(walk, period, kind, names, _roots()[0], unsaid.links(), True)


def _start(series, objects, blocks, apart):
    global _waiting, _spent, _last, _charged
    _last = series.count
    begin = time.thread_time()
    roots, names = _roots()
    if objects is None and not apart and state.may_touch():
        objects = gc.get_objects()
    hidden = [roots, names, objects]
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("millpond_agent", "sitecustomize"):
            hidden += (module, vars(module))
    links = unsaid.links()
    walk = link.walk(roots, objects, hidden, _tensors(objects), [id(part) for pair in links for part in pair], 2 * blocks + (1 << 18), apart)
    _charged = time.thread_time() - begin
    _spent += _charged
    if walk is None:
        return
    if apart:
        _waiting = (int(series.count), series.kind, names)
    else:
        _say(walk, int(series.count), series.kind, names, roots, links, False)


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
                    names[id(values)] = (frames.function_name(frame), [name for name, _ in found], "" if thread == threads.main_ident() else "another thread", [id(value) for value in values], frame.f_code)
                    count += 1
            frame = frame.f_back
    roots += [vars(module) for module in frames.user_modules()]
    roots.append(sys.modules)
    return roots, names


def _tensors(objects):
    """Pairs of a tensor and its data, where the object does not point to it: torch. Subclasses may run code of the program's when they are asked."""
    torch = sys.modules.get("torch")
    if getattr(torch, "nn", None) is None:
        return []
    if objects is None:
        objects = gc.get_objects() if state.may_touch() else _of_user()
    kinds = (torch.Tensor, getattr(torch.nn, "Parameter", None))
    pairs = []
    for thing in objects:
        if type(thing) in kinds and len(pairs) < 2 * kTensorsMost:
            try:
                if thing.device.type == "cpu":
                    pairs += (id(thing), thing.data_ptr() - thing.storage_offset() * thing.element_size())  # a slice keeps all of what it is a slice of
            except Exception:  # a tensor without storage
                pass
    return pairs


def _of_user():
    """What lies in the user's containers: where all objects are not gone through, because there are many or because most of them are the parent's."""
    things = []
    for found in Walk(kLook).run():
        thing = found.thing
        if type(thing) in (list, tuple, deque, set, dict):
            values = thing.values() if type(thing) is dict else thing
            for value in islice(reversed(values) if type(thing) in (list, deque) else list(values), kTensorsMost):
                things += value if type(value) in (list, tuple) else (value,)
    return things


def _say(walk, period, kind, names, roots, links, apart):
    global _spent
    begin = time.thread_time()
    told = []
    for index in range(min(walk.holders, kTold)):
        holder = walk.holder[index]
        row = {"bytes": holder.bytes, "blocks": round(holder.blocks, 1), "samples": holder.samples, "items": holder.items,
               "how": ("reached", "native", "garbage")[min(holder.how, 2)], "births": list(holder.births)}
        if holder.repeats:
            row["repeats"] = holder.repeats
        row["born"] = [dict(place, bytes=size) for place, size in _born(holder)]
        chain = Chain([(holder.steps[i].object, holder.steps[i].type.decode("utf-8", "replace")) for i in range(holder.depth)], names, roots, links)
        row.update(chain.said())
        puts.watch(row, chain, _birth_lines(holder), period)
        told.append(row)
    puts.told()
    link.note({"note": "walk", "kind": kind, "period": period, "apart": apart, "seconds": round(walk.ns * 1e-9, 5), "objects": walk.objects,
               "alive": walk.alive, "reached": walk.reached, "native": walk.native, "garbage": walk.garbage,
               "from_ms": walk.first_ms, "until_ms": walk.now_ms, "holders": told})
    _spent += time.thread_time() - begin


def _birth_lines(holder):
    """All of the user's lines that ran when survivors were made: (file, line) to bytes."""
    found = {}
    for stack, size in zip(holder.stacks, holder.stack_bytes):
        if stack != 0xFFFFFFFF:
            for place in {(file, line) for file, line, _ in link.stack(stack) if frames.has_source(file)}:
                found[place] = found.get(place, 0) + size
    return found


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


class Lengths:
    """How many items a holder has now, asked once or for several."""

    def __init__(self):
        self.roots = None

    def __call__(self, found):
        """Of the holder at the end of these addresses; None: it is not there, or does not say."""
        if self.roots is None:
            self.roots, self.links = _roots()[0], unsaid.links()
        objects = _objects(found, (), self.roots, self.links)
        return chains.size(objects[0])[0] if objects[0] is not None else None


def see_puts(series):
    """A round is over, while it is being seen what puts into the holders of the last walk."""
    global _spent
    begin = time.thread_time()
    puts.after_period(series, Lengths())
    _spent += time.thread_time() - begin


class Chain:
    """From a holder to its root: addresses and names of types as the walk found them, objects as far as they are still there, and steps that have words."""

    def __init__(self, found, names, roots, links):
        self.found = found
        self.objects = _objects(found, names, roots, links)
        if self.objects and type(self.objects[0]) is types.ModuleType and any(above is self.objects[0] for above, _ in links):
            name = self.objects[0].__name__
            self.steps = [chains.Step("registry", name, "functions registered with %s" % name, types.ModuleType, name)]
        else:
            self.steps = []
        self.steps += [step for step in (self._step(at, names) for at in range(len(found))) if step is not None and step.words]

    def _step(self, at, names):
        (address, kind), objects = self.found[at], self.objects
        above = self.found[at + 1][0] if at + 1 < len(self.found) else None
        if above in names:
            return _variable(names[above], address)
        if above is None:
            if address not in names:
                return chains.root(objects[at], kind)
            return chains.Step("local", None, "variables of %s" % names[address][0], None, names[address][4]) if at == 0 else None
        if objects[at] is None or objects[at + 1] is None:
            return chains.Step("held", None, kind)
        return chains.edge(objects[at + 1], objects[at], *(objects[at + 2:at + 4] + [None, None])[:2])

    def said(self):
        row = {"type": self.found[0][1] if self.found else None, "chain": [step.words for step in self.steps[:10]], "steps": [step.said() for step in self.steps[:10]]}
        holder = self.objects[0] if self.objects else None
        if holder is not None:
            length, limit = chains.size(holder)
            row.update({"length": length, "bounded": limit, "len": length, "bound": chains.bound(self.objects), "module": getattr(type(holder), "__module__", None)})
        return row


def _objects(found, names, roots, links):
    """The objects of a chain, looked up step by step from the root: only what is still there is touched."""
    objects = [None] * len(found)
    top = len(found) - 1
    if top < 0:
        return objects
    objects[top] = next((root for root in roots if id(root) == found[top][0]), None) if found[top][0] not in names else None
    if objects[top] is None and top > 0:  # the variables of a function, which are put together anew for each walk
        top -= 1
        objects[top] = next((value for root in roots if type(root) is list for value in root if id(value) == found[top][0]), None)
    while top > 0 and objects[top] is not None:
        objects[top - 1] = chains.below(objects[top], found[top - 1][0], links)
        top -= 1
    return objects


def _variable(known, address):
    function, names, where, addresses, code = known
    name = names[addresses.index(address)] if address in addresses else None
    return chains.Step("local", name, "local %s of %s%s" % (name or "?", function, " in %s" % where if where else ""), None, code)
