"""The memory of GPUs, as the pools of frameworks count it: at rounds what is in use and reserved, and of single blocks when and where they were born. The frameworks are asked
for what they know anyway; a device that the program has not started is never asked for, and nothing is asked while a CUDA graph is being captured.

A pool's block is told from an earlier one at its place by its size and its frames. Its birth lies between the last look without it and the first with it; its line is known where
the framework recorded it: torch does in one gap between two rounds of eight, JAX always."""

import os
import time

from . import frames, link, state

kEvery = 0.05  # seconds between two readings of the counters, at least
kNotes = 1 / 1000  # of the time so far: some thousand notes in any run, however long
kCounting = 0.001  # of the time, for reading counters
kLooking = 0.003  # for looking at blocks; together with recording (one gap in eight at 1.12 x, as measured on an H200) this stays below 1.02 x
kStart = 0.03  # seconds, for the first looks
kBlocks = 20000  # of a pool that are followed: the largest
kLeastBlock = 1 << 10
kLabels = 4096
kUnknown = 0x7FFFFFFE  # the label of a birth whose stack was not recorded
kStack = 24  # frames of a birth
kLines = 4  # told of a walk
kFirstGaps = (1, 4, 7)  # between rounds that are recorded first: a short run has three
kEveryGap = 8

_pools = []
_gap = 0  # how many rounds of the leading series were seen
_counting = _looking = 0.0
_labels = {}  # stack -> number
_stacks = []  # number -> ((file, line, function), ...), innermost first


def add(pool):
    """A framework has been imported. pool: name, ready(), counters(), blocks(), record(on); torch_pool.py, jax_pool.py, tensorflow_pool.py."""
    if os.environ.get("MILLPOND_GPU") != "0":  # to measure what this costs
        pool.ledger, pool.recording = Ledger(), False
        _pools.append(pool)


def forked():
    """A child by fork begins anew. It cannot use devices that its parent started: torch knows that, the others would wait for ever."""
    global _gap, _counting, _looking
    _pools[:] = [pool for pool in _pools if pool.name == "torch" or not pool.ready()]
    for pool in _pools:
        pool.ledger, pool.recording = Ledger(), False
    _gap = 0
    _counting = _looking = 0.0


def space(index):
    """The name of a device in reports, which is the driver's number, by the number that the program has for it."""
    shown = [part.strip() for part in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    return "gpu:%s" % (shown[index] if index < len(shown) and shown[index].isdigit() else index)


def after_period(series, now):
    """At every period mark, inside own work."""
    global _gap
    if not _pools:
        return
    from . import periods

    leads = periods.leader() is series
    ready = []
    for pool in _pools:
        try:
            if pool.ready():
                ready.append(pool)
                _count(pool, now)
                if leads:
                    _look(pool, now)
        except Exception:
            link.oops()
    if leads and ready:
        _gap += 1
        _record(ready, _gap in kFirstGaps or _gap % kEveryGap == 0)


def _count(pool, now):
    global _counting
    if now - pool.ledger.counted < max(kEvery, kNotes * state.elapsed()) or _counting > kStart + kCounting * state.elapsed():
        return
    pool.ledger.counted = now
    begin = time.thread_time()
    rows = [dict(values, space=space(index)) for index, values in pool.counters()]
    for row in rows:
        largest = pool.ledger.largest.get(row["space"])
        if largest is not None:
            row.setdefault("largest", largest)
    if rows:
        link.note({"note": "gpu", "pool": pool.name, "devices": rows})
    _counting += time.thread_time() - begin


def _look(pool, now, must=False):
    """What is alive now."""
    global _looking
    if pool.refused or not (must or _looking + pool.ledger.cost <= kStart + kLooking * state.elapsed()):
        return False
    begin = time.thread_time()
    first = pool.ledger.looked is None
    pool.ledger.sees(now, pool.blocks(pool.ledger))
    cost = time.thread_time() - begin
    pool.ledger.cost = 0.0 if first else cost  # what a framework makes ready at the first one is no cost of the next
    _looking += min(cost, kStart) if first else cost
    return True


def _record(pools, wanted):
    """Whether births are recorded until the next round."""
    for pool in pools:
        if pool.recording != wanted:
            pool.recording = wanted
            try:
                pool.record(wanted)
            except Exception:
                link.oops()


def stop():
    """The agent leaves, or the program ends."""
    _record(_pools, False)


def label(frames):
    """The number of a stack of births, given as (file, line, function), innermost first; None: there are too many."""
    frames = tuple(frames)[:kStack]
    number = _labels.get(frames)
    if number is None and len(_stacks) < kLabels:
        number = _labels[frames] = len(_stacks)
        _stacks.append(frames)
    return number


class Ledger:
    """The blocks of a pool that are alive, each with its bytes, device, birth and label."""

    def __init__(self):
        self.known = {}  # key -> [bytes, device, born (None: before the first look), label, weak reference to the owner or None, mark of its frames]
        self.looked = None  # when
        self.counted = -1e9
        self.cost = 0.0
        self.largest = {}  # space -> bytes of the largest free block

    def sees(self, now, blocks):
        """blocks: [key, bytes, device, owner, frames]; owner: a weak reference where the key may come again, frames: a function that tells the stack, None: not recorded,
        and a mark by which another recording is known."""
        if len(blocks) > kBlocks:
            blocks = sorted(blocks, key=lambda block: -block[1])[:kBlocks]
        known, found, born = self.known, {}, []
        for key, size, device, owner, mark, frames in blocks:
            old = known.get(key)
            if old is not None and old[0] == size and old[5] == mark and (old[4] is None or old[4]() is not None):
                found[key] = old
                continue
            number = label(frames()) if frames is not None else None
            found[key] = entry = [size, device, None, number, owner, mark]
            born.append(entry)
        if self.looked is not None:
            for index, entry in enumerate(born):
                entry[2] = self.looked + (now - self.looked) * (index + 0.5) / len(born)
        self.known, self.looked = found, now


class Blocks:
    """What the walk over all objects is told of the blocks of one pool and device: the blocks, and which object owns each."""

    def __init__(self, pool, now):
        self.pool = pool
        young = {}
        for size, device, born, _, _, _ in pool.ledger.known.values():
            if born is not None:
                young[device] = young.get(device, 0) + size
        self.device = max(young, key=young.get) if young else None
        self.space = space(self.device) if young else None
        self.entries = {key: entry for key, entry in pool.ledger.known.items() if entry[1] == self.device and entry[2] is not None}
        self.now = now
        self.graph = set()  # keys that a graph of gradients leads to
        self.owned = []

    def bytes(self):
        return sum(entry[0] for entry in self.entries.values())

    def own(self, thing, key):
        self.owned += (id(thing), key)

    def own_by_graph(self, thing, key):
        """An odd address tells the walk that it is not the tensor itself."""
        self.owned += (id(thing) | 1, key)
        self.graph.add(key)

    def owners(self, tensors):
        """Flat pairs of an object and the key of a block that it owns. tensors: those of torch."""
        try:
            self.pool.owners(self, tensors)
        except Exception:
            link.oops()
        return self.owned

    def given(self):
        """Flat: key, bytes, age in milliseconds, label. A label is twice the number of a stack, and one more where a graph of gradients leads to it; the walk takes the one off again
        where it reaches a tensor whose data it is."""
        flat = []
        for key, (size, _, born, number, _, _) in self.entries.items():
            flat += (key, size, int(1000 * (self.now - born)), (kUnknown if number is None else 2 * number) + (key in self.graph))
        return flat

    def lines(self):
        """The user's lines under which most of it was made, held or not."""
        found = {}
        for size, _, _, number, _, _ in self.entries.values():
            for file, line, function in _stacks[number] if number is not None else ():
                if frames.is_user_file(file) or file == frames.kGiven:
                    found[(file, line, function)] = found.get((file, line, function), 0) + size
                    break
        rows = sorted(found.items(), key=lambda item: -item[1])[:kLines]
        return [{"file": file, "line": line, "function": function, "text": frames.text(file, line), "bytes": size} for (file, line, function), size in rows]

    @staticmethod
    def stack(number):
        return _stacks[number >> 1] if number >> 1 < len(_stacks) else ()

    @staticmethod
    def through_graph(numbers, sizes):
        return sum(size for number, size in zip(numbers, sizes) if number & 1 and number <= kUnknown + 1)


def has_blocks():
    """Whether a device was seen to hold something for the program."""
    return any(pool.ledger.known for pool in _pools)


def blocks():
    """Of the pool with most that is young, after a look at it; None: there is none."""
    best = None
    now = time.monotonic()
    for pool in _pools:
        try:
            if not pool.ready() or pool.refused or not _look(pool, now, must=pool.ledger.cost < 0.05):
                continue
            found = Blocks(pool, now)
            if found.entries and (best is None or found.bytes() > best.bytes()):
                best = found
        except Exception:
            link.oops()
    return best
