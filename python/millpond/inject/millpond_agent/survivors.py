"""Who holds what survives: the probe walks over all objects from the roots, joined with the sampled blocks that are alive (src/probe/walk.h), and finds the
holders, by births. Here: when, from which roots, and what the steps of a chain are called. A walk is made in place when it is short, otherwise in a child
that the program does not see; together they take about 1 % of the time."""

import gc
import sys
import time
import types

from . import chains, counters, courses, frames, gpu, link, puts, state, tensors, threads, unsaid, variables

kInPlace = 0.05  # seconds
kPerObject = 4e-7  # seconds in place, as measured: 871,000 objects in 0.28 to 0.40 s
kPassedBy = 0.05  # of the time of an object, for one that is passed by
kShare, kStart = 0.01, 0.1  # of the time; seconds for the first ones
kTables = 0.01  # of free memory may go to the page tables of a child
kTold = 24
kFramesMost = 400
kShallowMost = 150000  # objects
kKeepers = 16  # modules of libraries
kUnheld, kUnheldShare = 128 << 10, 0.01  # bytes that nothing was found to hold, of all: then the libraries are gone through too
kTensors, kTensorsAll = 256 << 10, 8 << 20  # bytes, likewise, for which tensors are asked where their data lies; for which all are: a large framework has half a million objects
kComes = 0.1  # a leak has half of its bytes from the later half; beside ten times as much from the beginning it is seen still
kGained = 1 << 20  # bytes of a device since the last walk with its blocks: fewer are no leak
kMore = 1.5  # times as many as were left the last time that was done

kGainedHere, kGainedShare = 64 << 10, 1 / 2000  # bytes in use since the last walk, also of all: with fewer it would find what that one found
kPerBlock = 64  # bytes, about
kPause = 2  # how many times as many rounds until the next walk then

kFirst, kFirstSecond = 4, 2  # rounds until the first walk; of a program that says nothing of its rounds, seconds
kPace = ((0.005, 1.1), (0.02, 1.15), (1e9, 1.5))  # how many times as many rounds until the next, after one that took fewer seconds

_spent = 0.0
_charged = 0.0  # for the last one
_last = 0  # round of the last one
_used = 0  # bytes in use after it
_waiting = None  # what is known of the walk that a child makes: (round, kind, names of roots, blocks of a device); nothing of the program's is kept alive by it
_refused = None  # why none is made, once it is known
_no_child = False  # there is no memory for one
_round = 0  # of the leading series, when it was last asked
_shallow_seconds = 0.002  # that the last one took
_tracked = 0  # objects that the collector knew when they were last counted
_left = 0  # bytes that no root was found to reach when the libraries had been gone through too
_shares = (0.0, 0.0)  # of these, held by native code, garbage
_said = _held = False  # a walk was told; one that found a holder
_too_large = False  # what the user's code reaches alone is as much as a library
_no_tensors = 0  # bytes that nothing was found to hold when it had not helped to ask tensors for their data
_series = None  # the last one's kind and name
_on_device = 0  # bytes of blocks on a GPU that the last walk was told of
_later = [-1, []]  # how many modules there were; modules of libraries, and their dictionaries
_keepers = set()  # names of those in which a holder was found
_tops = {}  # address -> such a module or dictionary


def is_due(series):
    if _waiting is not None:
        return True
    factor = next(factor for seconds, factor in kPace if _charged < seconds)
    last = _last if _series == (series.kind, series.name) else 0
    first = kFirstSecond if series.kind == "timer" else kFirst
    return not _refused and series.count >= max(first, factor * last) and (series.count >= kPause * last or _gained())


def _in_use():
    """What changes with it when something is kept: pages, what is handed out again of free memory, and Python's objects, which may fill what its allocator had free."""
    return counters.rss() - link.free_bytes() + kPerBlock * sys.getallocatedblocks()


def _gained():
    """Whether there can be something that the last walk has not seen."""
    used = _in_use()
    return abs(used - _used) > max(kGainedHere, kGainedShare * used) or gpu.has_blocks()


def after_period(series, objects=None):
    """Tells a walk that a child has finished, and makes the next one if that is affordable. objects: gc.get_objects(), where it is there anyway."""
    global _refused, _round, _series, _last, _tracked
    _round = int(series.count)
    if objects is not None:
        _tracked = len(objects)
    if _series != (series.kind, series.name):  # another one leads, which counts in its own way
        _series, _last = (series.kind, series.name), 0
    finish()
    if _waiting is not None or not link.native() or not is_due(series):
        return
    if "t" in sys.abiflags:
        _refused = "this Python is built without the GIL, and other threads would change what is walked over"
        link.note({"note": "walk", "refused": _refused})
        return
    if _affords(_shallow_seconds):
        _walk(series, objects)


def _affords(seconds):
    return _spent + seconds <= kStart + kShare * state.elapsed()


def _walk(series, objects):
    """What the user's code reaches, in place; then, if much is held elsewhere and that is affordable, all."""
    global _spent, _last, _used, _charged, _shallow_seconds, _no_tensors, _waiting, _too_large
    begin = time.thread_time()
    _last = series.count
    request = _Request(objects)
    request.take_device(gpu.blocks())
    walk = request.run(shallow=True) if not _too_large else None
    if walk is not None and _is_much(walk) and walk.unclaimed > max(kTensors, kMore * _no_tensors) and tensors.any_framework():
        before = walk.unclaimed
        request.own(tensors.pairs(request.things(walk.unclaimed > kTensorsAll and _still_comes(walk))))
        if request.owned:
            walk = request.run(shallow=True)
        _no_tensors = before if walk is not None and walk.unclaimed == before else 0
    if walk is None and not _too_large:
        return  # a child looks for pointers to native blocks
    _too_large = _too_large or walk.full != 0
    how = _how_to_walk_all() if _too_large or (_is_much(walk) and walk.unclaimed > kMore * _left) else None
    if how == "apart" and not _too_large and not _still_comes(walk):
        how = None
    if how != "in place" and walk is not None and not _too_large:
        request.say(walk, series, True)
    _shallow_seconds = time.thread_time() - begin
    if how is not None:
        apart = how == "apart"
        if request.objects is None and not apart and state.may_touch():
            request.objects = gc.get_objects()
        request.links += unsaid.memos(request.objects or ())
        walk = request.run(room=2 * sys.getallocatedblocks() + (1 << 18), apart=apart)
        if walk is not None and apart:
            _waiting = (_round, series.kind, request.roots.names, request.device)
        elif walk is not None:
            _learn(walk)
            request.say(walk, series, False)
    _charged = time.thread_time() - begin
    _spent += _charged
    _used = _in_use()


def _learn(walk):
    """From a walk over all: what no root reaches, and whose it is."""
    global _left, _shares
    _left = walk.alive - walk.reached
    _shares = (walk.native / _left, walk.garbage / _left) if _left > 0 else (0.0, 0.0)


def _is_much(walk):
    return walk.unclaimed > max(kUnheld, kUnheldShare * walk.alive)


def _still_comes(walk):
    """Whether a good part of what nothing was found to hold was born in the later half of the time: what a framework took when training began is no growth, and all objects are not gone
    through for it."""
    return walk.lately > max(kTensors, kComes * walk.unclaimed)


def _how_to_walk_all():
    """"in place" where that is short, "apart" in a child; None: it costs too much."""
    global _no_child
    seconds = kPerObject * _to_visit()
    apart = seconds > kInPlace
    if not _affords(seconds / 4 if apart else seconds) or (apart and _no_child):
        return None
    if apart and not _room_for_child():
        _no_child = True
        link.note({"note": "walk", "refused": "the page tables of a child would take too much of the free memory"})
        return None
    return "apart" if apart else "in place"


def _to_visit():
    """About how many objects a walk over all visits: those that the collector knows, as far as they were counted, and what these have in blocks of their own. Numbers are passed by, and a program
    may have millions."""
    blocks = sys.getallocatedblocks()
    return min(blocks, 2 * _tracked + kPassedBy * blocks) if _tracked else blocks


class _Request:
    """What a walk is asked with."""

    def __init__(self, objects):
        self.roots = _Roots()
        self.objects = objects
        self.links = unsaid.links()
        self.owned = []
        self.device = None  # blocks of a GPU

    def things(self, all_of_them):
        """Objects among which tensors are. all_of_them: those of libraries too, where that is asked for."""
        if not all_of_them or (self.objects is None and not state.may_touch()):
            return tensors.of_user()
        return gc.get_objects() if self.objects is None else self.objects

    def take_device(self, device):
        """Blocks of a GPU: who holds them is told too, where there are more than at the last walk that did."""
        global _on_device
        if device is not None and device.bytes() > _on_device + kGained:
            self.device, _on_device = device, device.bytes()
            self.own(device.owners(tensors.of_torch(self.things(device.bytes() > kTensorsAll))))

    def own(self, pairs):
        self.owned = self.owned + pairs

    def say(self, walk, series, shallow):
        _say(walk, _round, series.kind, self.roots, self.links, False, shallow)
        if self.device is not None:
            _say(link.device_walk(), _round, series.kind, self.roots, self.links, False, shallow, self.device)

    def run(self, shallow=False, room=kShallowMost, apart=False):
        later = _libraries()
        hidden = [self, vars(self), self.roots, vars(self.roots), self.links, self.objects, self.owned, later]
        hidden += [value for value in vars(self.roots).values() if type(value) in (list, dict)]
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] in ("millpond_agent", "sitecustomize"):
                hidden += (module, vars(module))
        links = [id(part) for pair in self.links for part in pair]
        return link.walk(self.roots.all, None if shallow else self.objects, hidden, later, self.owned, links, self.device.given() if self.device is not None else [], room, apart, shallow)


def _libraries():
    """The dictionaries of libraries' modules, then the modules: a way that ends in a dictionary has a name. What is held there is looked for when it is not found elsewhere, but for those
    where something was found before."""
    if _later[0] != len(sys.modules):
        users = {id(module) for module in frames.user_modules()}
        modules = [module for name, module in list(sys.modules.items()) if isinstance(module, types.ModuleType) and name not in _keepers and id(module) not in users]
        _later[:] = len(sys.modules), [module.__dict__ for module in modules] + modules
        _tops.clear()
        _tops.update((id(thing), thing) for thing in _later[1])
    return _later[1]


def _found_in(step):
    """Something is held by a module of a library: from now on it is walked into like the user's."""
    module = sys.modules.get(step.name) if step.kind == "module" else None
    if module is not None and id(module) in _tops and len(_keepers) < kKeepers:
        _keepers.add(step.name)
        _later[1] = [thing for thing in _later[1] if thing is not module and thing is not module.__dict__]


def finish(at_end=False):
    """Says what a child has found, if it is done. At the end, when functions have returned whose variables lead to what it found, only if nothing else was ever said."""
    global _waiting, _spent, _charged
    if _waiting is None or (at_end and _said):
        return
    done = link.walked()
    if done == 0:
        return
    (period, kind, names, device), _waiting = _waiting, None
    if done > 0:
        walk = link.last_walk()
        _charged += walk.ns * 1e-9 / 4  # beside the program, on a core that may be free
        _spent += walk.ns * 1e-9 / 4
        _learn(walk)
        roots, links = _Roots(), unsaid.links()
        roots.names = names
        _say(walk, period, kind, roots, links, True, False)
        if device is not None:
            _say(link.device_walk(), period, kind, roots, links, True, False, device)


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


class _Roots:
    """What the walk begins with, in ranks: the variables of the user's running functions, a list for each, and his modules; then variables of libraries' functions; then what these were only
    handed in `*args` or `**kwargs` and hand on. So a chain ends at a name that the user knows wherever there is one."""

    def __init__(self):
        self.variables = []
        self.names = {}  # address of such a list -> function, names, where, addresses, code
        ranks = [], [], []
        alike = {}  # of other threads, the variables of one function together: many that wait in it are one holder
        count = 0
        for thread, frame in list(sys._current_frames().items()):
            main = thread == threads.main_ident()
            while frame is not None and count < kFramesMost:
                code = frame.f_code
                if "/millpond_agent/" not in code.co_filename and code.co_name != "<module>":
                    count += 1
                    found, handed = variables.items(frame), () if frames.is_user_frame(frame) else _gathered(code)
                    first = 0 if frames.is_user_frame(frame) else 1
                    for rank, part in ((first, [pair for pair in found if pair[0] not in handed]), (2, [pair for pair in found if pair[0] in handed])):
                        if main:
                            self._add(ranks[rank], frame, part, "")
                        else:
                            known = alike.setdefault((rank, id(code)), [frame, [], 0])
                            known[1] += part
                            known[2] += 1
                frame = frame.f_back
        for (rank, _), (frame, found, times) in alike.items():
            self._add(ranks[rank], frame, found, "another thread" if times == 1 else "other threads")
        alike.clear()
        ranks[0].extend(vars(module) for module in frames.user_modules())
        ranks[0].extend(vars(sys.modules[name]) for name in _keepers if isinstance(sys.modules.get(name), types.ModuleType))
        self.all = [*ranks[0], None, *ranks[1], None, *ranks[2], sys.modules]

    def _add(self, rank, frame, found, where):
        if found:
            values = [value for _, value in found]
            self.variables.append(values)
            rank.append(values)
            self.names[id(values)] = (frames.function_name(frame), [name for name, _ in found], where, [id(value) for value in values], frame.f_code)

    def at(self, address):
        """The root that has this address; None: there is none."""
        _libraries()
        found = next((root for root in self.all if id(root) == address and root is not None), None)
        return found if found is not None else _tops.get(address)

    def variable(self, address):
        return next((value for values in self.variables for value in values if id(value) == address), None)


def _say(walk, period, kind, roots, links, apart, shallow, device=None):
    """device: the blocks of a GPU that the walk was made with."""
    global _said, _held
    _said = True
    stack_of = link.stack if device is None else device.stack
    told, growing = [], []
    circled = _in_circles(walk)
    for index in range(walk.holders):
        holder = walk.holder[index]
        if len(told) >= kTold and not holder.whole:
            continue
        row = {"bytes": holder.bytes, "blocks": round(holder.blocks, 1), "samples": holder.samples, "items": holder.items,
               "how": ("reached", "native", "garbage")[min(holder.how, 2)], "births": list(holder.births)}
        if holder.repeats:
            row["repeats"] = holder.repeats
        if holder.alike:
            row["alike"] = holder.alike
        if device is not None:
            row["graph"] = device.through_graph(holder.stacks, holder.stack_bytes)
        chain = Chain([(holder.steps[i].object, holder.steps[i].type.decode("utf-8", "replace")) for i in range(holder.depth)], roots, links)
        row.update(chain.said())
        if chain.steps and not shallow and holder.how == 0:
            _found_in(chain.steps[-1])
        now = chain.sizes(holder.whole)
        rises = courses.seen(row, chain, kind, _round, now, holder.whole)
        if not holder.whole or rises:
            row["born"] = [dict(place, bytes=size) for place, size in _born(holder, stack_of)]
            births = _birth_lines(holder, stack_of)
            if row["how"] == "garbage":
                puts.watch_circle(row, circled.get(holder.steps[0].object), births, _round)
            else:
                puts.watch(row, chain, births, _round, now)
            (growing if holder.whole else told).append(row)
        chain.forget()
    puts.told()
    if shallow and not told and not growing and _held:
        return  # the function whose variables they were has returned: what was found before is what there is to know
    _held = _held or bool(told)
    note = {"note": "walk", "kind": kind, "period": period, "apart": apart, "seconds": round(walk.ns * 1e-9, 5), "objects": walk.objects,
            "alive": walk.alive, "reached": walk.reached, "native": walk.native, "garbage": walk.garbage,
            "from_ms": walk.first_ms, "until_ms": walk.now_ms, "holders": told, "growing": growing}
    if shallow:
        note["shallow"] = True
    if device is not None:
        note.update(space=device.space, pool=device.pool.name, lines=device.lines())
    elif shallow:  # what it did not reach is whose it was when all was walked over
        left = walk.alive - walk.reached
        note.update(native=int(_shares[0] * left), garbage=int(_shares[1] * left))
    link.note(note)


def _in_circles(walk):
    """What the walk calls garbage, by address: nothing leads to it but the collector's own list. Only what is still there is found."""
    wanted = {walk.holder[index].steps[0].object for index in range(walk.holders) if walk.holder[index].how == 2 and walk.holder[index].depth}
    if not wanted or not state.may_touch() or not _affords(kPerObject / 4 * _to_visit()):
        return {}
    return {id(thing): thing for thing in gc.get_objects() if id(thing) in wanted}


class _Births(dict):
    """All of the user's lines that ran when survivors were made: (file, line) to bytes. functions: the same with the function's name."""

    __slots__ = ("functions",)


def _birth_lines(holder, stack_of):
    found = _Births()
    found.functions = set()
    for stack, size in zip(holder.stacks, holder.stack_bytes):
        if stack != 0xFFFFFFFF:
            rows = {(file, line, function.rpartition(".")[2]) for file, line, function in stack_of(stack) if frames.has_source(file)}
            found.functions |= rows
            for place in {row[:2] for row in rows}:
                found[place] = found.get(place, 0) + size
    return found


def _born(holder, stack_of):
    """Where the survivors were made: the innermost of the user's lines, most bytes first."""
    found = {}
    for stack, size in zip(holder.stacks, holder.stack_bytes):
        if stack == 0xFFFFFFFF:
            continue
        for file, line, function in stack_of(stack):
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

    def __call__(self, chain):
        """(items, what lies in these) of the holder at the end of a chain; None: it is not there, or does not say."""
        if self.roots is None:
            self.roots, self.links = _Roots(), unsaid.links()
        return chain.sizes_of(chain.now(self.roots, self.links))


def follows():
    """Whether after_round has something to do."""
    return puts.watching() or courses.following()


def after_round(series):
    """A round is over: what has each holder of the last walk, and what puts into it?"""
    global _spent
    if not follows():
        return
    begin = time.thread_time()
    lengths = Lengths()
    puts.after_period(series, lengths)
    courses.after_period(series, lengths)
    _spent += time.thread_time() - begin


class Chain:
    """From a holder to its root: addresses and names of types as the walk found them, objects as far as they are still there, and steps that have words."""

    def __init__(self, found, roots, links):
        names = roots.names
        self.found = found
        self.objects = _objects(found, roots, links)
        self.top = names[found[-1][0]][4] if found and found[-1][0] in names else None  # the code whose variable it is
        self.places = self._places(names)
        if self.objects and type(self.objects[0]) is types.ModuleType and any(above is self.objects[0] for above, _ in links):
            name = self.objects[0].__name__
            self.steps = [chains.registered(name)]
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
            function, _, where, _, code = names[address]
            return chains.Step("local", None, "variables of %s%s" % (function, " in %s" % where if where else ""), None, code) if at == 0 else None
        if objects[at] is None or objects[at + 1] is None:
            return chains.Step("held", None, kind)
        return chains.edge(objects[at + 1], objects[at], *(objects[at + 2:at + 4] + [None, None])[:2])

    def _places(self, names):
        """Under which name each object of the chain is held by the next; None: by none."""
        found = []
        for at in range(len(self.found) - 1):
            above = self.found[at + 1][0]
            if above in names:
                _, own, _, addresses, _ = names[above]
                found.append(own[addresses.index(self.found[at][0])] if self.found[at][0] in addresses else None)
            else:
                held = self.objects[at] is not None and self.objects[at + 1] is not None
                found.append(chains.place(self.objects[at + 1], self.objects[at]) if held else None)
        return found

    def sizes(self, whole):
        """(items of the holder, what lies in these), or the bytes of one that is a single block; None: it does not say."""
        self.whole = whole
        return self.sizes_of(self.objects[0] if self.objects else None)

    def sizes_of(self, holder):
        if holder is None:
            return None, None
        return (chains.block_bytes(holder), None) if self.whole else (chains.size(holder)[0], chains.inner(holder))

    def forget(self):
        """Keeps no object of the program alive."""
        self.objects = self.steps = ()

    def now(self, roots, links):
        """The holder as it is now: what is still there by its address, or has taken its place by its name. None: neither."""
        at = len(self.found) - 1
        if self.top is not None:
            at -= 1
            thing = self._variable_now(roots, at)
        else:
            thing = roots.at(self.found[at][0]) if at >= 0 else None
        while at > 0 and thing is not None:
            at -= 1
            child = chains.below(thing, self.found[at][0], links)
            if child is None and self.places[at] is not None:
                child = chains.at(thing, self.places[at])
            thing = child
        return thing if thing is None or type(thing).__name__ == self.found[0][1].rpartition(".")[2] else None

    def _variable_now(self, roots, at):
        for values in roots.variables if at >= 0 else ():
            _, own, _, addresses, code = roots.names[id(values)]
            if code is self.top:
                if self.found[at][0] in addresses:
                    return values[addresses.index(self.found[at][0])]
                if self.places[at] in own:
                    return values[own.index(self.places[at])]
        return None

    def said(self):
        row = {"type": self.found[0][1] if self.found else None, "chain": [step.words for step in self.steps[:10]], "steps": [step.said() for step in self.steps[:10]]}
        holder = self.objects[0] if self.objects else None
        if holder is not None:
            length, limit = chains.size(holder)
            row.update({"length": length, "bounded": limit, "len": length, "bound": chains.bound(self.objects), "module": getattr(type(holder), "__module__", None)})
        return row


def _objects(found, roots, links):
    """The objects of a chain, looked up step by step from the root: only what is still there is touched."""
    objects = [None] * len(found)
    top = len(found) - 1
    if top < 0:
        return objects
    objects[top] = roots.at(found[top][0]) if found[top][0] not in roots.names else None
    if objects[top] is None and top > 0:  # the variables of a function, which are put together anew for each walk
        top -= 1
        objects[top] = roots.variable(found[top][0])
    while top > 0 and objects[top] is not None:
        objects[top - 1] = chains.below(objects[top], found[top - 1][0], links)
        top -= 1
    return objects


def _gathered(code):
    """Names of a function's `*args` and `**kwargs`."""
    first = code.co_argcount + code.co_kwonlyargcount
    return code.co_varnames[first:first + bool(code.co_flags & 4) + bool(code.co_flags & 8)]


def _variable(known, address):
    function, names, where, addresses, code = known
    name = names[addresses.index(address)] if address in addresses else None
    return chains.Step("local", name, "local %s of %s%s" % (name or "?", function, " in %s" % where if where else ""), None, code)
