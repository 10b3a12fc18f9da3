"""What moves memory without leaking: walks, teeth, late fills, pools, growing tables, garbage, fragments; and decoys that look like leaks and keep nothing."""
import dataclasses
import math

from .holders import BOUNDED
from .parts import Part, with_item


@dataclasses.dataclass
class Level:
    """What a part without a leak leaves: the verdicts that are right for it, how many bytes, and the round in which they are all there."""
    kind: str
    accepted: tuple
    bytes: float
    done_by: float
    may_go_on: bool = False  # it still grows at the end, though something bounds it


def log_uniform(rng, low, high):
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def walk(draw):
    """A live level that wanders between nothing and a bound."""
    rng, scope = draw.rng, draw.scope
    cap = rng.randint(4, 60)
    item = draw.item(log_uniform(rng, 2e4, 4e7 / cap))
    each = scope.fill("if len(§items) < «cap» and random.random() < 0.5 + 0.25 * (len(§items) < «half»):\n    §items.append(ITEM)\nelif §items:\n    §items.pop(random.randrange(len(§items)))", cap=cap, half=cap // 2)
    return with_item(draw, item, Part("random walk", ("import random",), begin=scope.fill("§items = []"), each=each), Level("flat", ("flat", "cache", "reserve", "retention"), cap * item.size(0), draw.rounds / 3))


def teeth(draw):
    """A list that fills and is emptied again and again."""
    rng, scope = draw.rng, draw.scope
    period = rng.randint(2, max(2, draw.rounds // 5))
    calls = period * draw.steps
    item = draw.item(log_uniform(rng, 1e4, 6e7) / calls)
    clear = rng.choice(["§items.clear()", "§items = []", "del §items[:]"])
    each = scope.fill(f"§items.append(ITEM)\nif len(§items) >= «calls»:\n    {clear}", calls=calls)
    return with_item(draw, item, Part("saw-teeth", begin=scope.fill("§items = []"), each=each), Level("flat", ("flat", "cache", "reserve", "retention"), calls * item.size(0), period))


def bounded(draw, late=None):
    """A holder with a bound that fills at some time: early, in the middle, near the end, or not within the run."""
    rng, scope = draw.rng, draw.scope
    holder = rng.choices(*draw.possible(BOUNDED))[0]
    fill = late if late is not None else rng.choice([rng.uniform(0.02, 0.3), rng.uniform(0.02, 0.3), rng.uniform(0.3, 0.8), rng.uniform(0.8, 1.3)])
    cap = max(2, round(fill * draw.rounds * draw.steps))
    total = min(log_uniform(rng, 1e6, 4e8), draw.room)
    size = max(200, min(total / cap, draw.churn))
    if holder.takes == ("row",):
        width = max(8, int(size / 8))
        part = Part(holder.kind, holder.imports, begin=scope.fill(holder.begin, cap=cap, width=width), each=scope.fill(holder.each, cap=cap, width=width))
        total = cap * width * 8
        made = part
    else:
        item = draw.item(size, holder.takes)
        keep = lambda text: scope.fill(text, cap=cap)
        made = Part(holder.kind, holder.imports, keep(holder.top), keep(holder.begin), keep(holder.each))
        total = cap * item.size(0)
    done = cap / draw.steps
    rising = done > draw.rounds - 5
    accepted = ("cache", "reserve", *(("unsure",) if rising else ()), *(("flat",) if total * min(1, draw.rounds / done) < 8e6 or done < 0.25 * draw.rounds else ()))
    level = Level("cache", accepted, total * min(1.0, draw.rounds / done), done, rising)
    if holder.takes == ("row",):
        made.level = level
        return made
    made.level = level
    return with_item(draw, item, made, level)


def late_fill(draw):
    return bounded(draw, draw.rng.uniform(0.5, 1.0))


def growing_table(draw):
    """An array that doubles until all rows of a known number are in it."""
    rng, scope = draw.rng, draw.scope
    width = rng.choice([64, 256, 1024])
    rows = max(16, int(min(log_uniform(rng, 1e6, 2e8), draw.room / 2) / width / 8))
    done = max(2, int(rng.uniform(0.1, 0.75) * draw.rounds))
    add = max(1, rows // (done * draw.steps))
    text = """
if §used < «rows»:
    if §used + «add» > len(§table):
        $wider = np.zeros((2 * len(§table) + «add», «width»))
        $wider[:§used] = §table[:§used]
        §table = $wider  #@hold
    §table[§used:§used + «add»] = «i» * 0.5
    §used += «add»""".strip()
    each = scope.fill(text, rows=rows, add=add, width=width)
    done = math.ceil(rows / add / draw.steps)
    total = 1.5 * rows * width * 8
    level = Level("cache", ("cache", "reserve", *(("flat",) if total < 8e6 or done < 0.25 * draw.rounds else ())), total, done)
    if done > draw.rounds - 5:
        level.accepted, level.may_go_on = (*level.accepted, "unsure"), True
    return Part("growing table", ("import numpy as np",), begin=scope.fill("§table = np.zeros((«add», «width»))\n§used = 0", add=add, width=width), each=each, level=level)


def logarithm(draw):
    """Distinct keys of a finite set, drawn again and again: many new ones at first, hardly any later."""
    rng, scope = draw.rng, draw.scope
    keys = rng.randint(20, 400)
    item = draw.item(min(log_uniform(rng, 5e5, 8e7), draw.room) / keys, each=keys / draw.calls)
    tries = max(1, math.ceil(keys * rng.uniform(5, 9) / (draw.rounds * draw.steps)))
    text = "for $n in range(«tries»):\n    $key = random.randrange(«keys»)\n    if $key not in §items:\n        §items[$key] = ITEM  #@hold"
    each = scope.fill(text, tries=tries, keys=keys)
    level = Level("cache", ("cache", "reserve", "flat", "unsure"), keys * item.size(0), draw.rounds, True)
    return with_item(draw, item, Part("logarithmic growth", ("import random",), begin=scope.fill("§items = {}"), each=each), level)


def garbage(draw):
    """Temporary objects, some of them in circles that only the collector frees."""
    rng, scope = draw.rng, draw.scope
    count = rng.randint(5, 60)
    item = draw.item(log_uniform(rng, 400, 2.4e4), each=count)
    top = "class $Node:\n    def __init__(self, $what, $up=None):\n        self.$what = $what\n        self.$up = $up\n        self.$down = []\n        if $up is not None:\n            $up.$down.append(self)"
    each = "$node = $Node(ITEM)\nfor $n in range(«count»):\n    $node = $Node(ITEM, $node)\n$node = None"
    # Circles wait for the collector, which comes by counts of objects and not by bytes: some 2,500 nodes may be alive at once.
    return with_item(draw, item, Part("circles", (), scope.fill(top), each=scope.fill(each, count=count)), Level("flat", ("flat", "reserve", "retention", "cache"), 2500 * item.size(0), 2))


def temporaries(draw):
    rng, scope = draw.rng, draw.scope
    count = rng.randint(1, 12)
    item = draw.item(log_uniform(rng, 1e5, 8e7) / count, each=count)
    each = rng.choice(["$some = [ITEM for $n in range(«count»)]\n§seen += len($some)\ndel $some", "§seen += sum(len(ITEM) for $n in range(«count»))", "$some = {}\nfor $n in range(«count»):\n    $some[$n] = ITEM\n§seen += len($some)\n$some.clear()"])
    return with_item(draw, item, Part("temporaries", begin=scope.fill("§seen = 0"), each=scope.fill(each, count=count)), Level("flat", ("flat", "reserve", "retention"), count * item.size(0), 2))


def fragments(draw):
    """Once, many small blocks are made and all but every n-th let go: their pages cannot be given back."""
    rng, scope = draw.rng, draw.scope
    kind = rng.choice(["strings", "tuples", "floats"])
    every = rng.choice([8, 12, 20])
    size = {"strings": 300, "tuples": 180, "floats": 400}[kind]
    count = int(log_uniform(rng, 4e7, 1.6e8) / size)
    value = {"strings": "(\"%07d;\" % $n) * 30", "tuples": "($n * 1.5, $n + 1000000, \"t%07d\" % $n)", "floats": "[$n * 0.5, $n * 1.5, $n * 2.5, $n * 3.5, $n * 4.5]"}[kind]
    at = rng.choice([0, 0, rng.randint(1, max(1, draw.rounds // 3))])
    top = f"def $do_read($rows):\n    $all = [{value} for $n in range($rows)]\n    return $all[::«every»]"
    text = "§chosen = $do_read(«count»)"
    begin, each = (text, "") if at == 0 else ("§chosen = []", f"if «i» == {at * draw.steps} and not §chosen:\n    {text}")
    keep = lambda text: scope.fill(text, every=every, count=count)
    return Part("fragments", (), keep(top), keep(begin), keep(each), level=Level("fragmentation", ("fragmentation", "retention", *(("reserve", "cache") if at else ("reserve", "flat"))), count * size, at + 1))


def kept_by_malloc(draw):
    """Once, many blocks below the mmap threshold are made and freed, with a few small ones above them that live on: malloc keeps the pages until it is trimmed."""
    rng, scope = draw.rng, draw.scope
    width = rng.choice([12000, 24000, 48000])
    count = int(log_uniform(rng, 6e7, 2e8) / width)
    top = "def $do_read($rows):\n    $all, $heads = [], []\n    for $n in range($rows):\n        $row = bytes([$n % 251]) * «width»\n        $all.append($row)\n        $heads.append($row[:600])\n    return $heads"
    at = rng.choice([0, 0, rng.randint(1, max(1, draw.rounds // 3))])
    text = "§heads = $do_read(«count»)"
    begin, each = (text, "") if at == 0 else ("§heads = []", f"if «i» == {at * draw.steps} and not §heads:\n    {text}")
    keep = lambda text: scope.fill(text, width=width, count=count)
    return Part("kept by malloc", (), keep(top), keep(begin), keep(each), level=Level("retention", ("retention", "fragmentation", *(("reserve", "cache") if at else ("reserve", "flat"))), count * width, at + 1))


def taken_once(draw):
    """A large table at the start, or at some round."""
    rng, scope = draw.rng, draw.scope
    size = min(log_uniform(rng, 2e6, 3e8), draw.room)
    at = rng.choice([0, rng.randint(0, max(1, draw.rounds - 7))])
    item = draw.item(size, each=1 / draw.calls)
    begin, each = (scope.fill("§table = ITEM"), "") if at == 0 else (scope.fill("§table = None"), scope.fill(f"if «i» >= {at * draw.steps} and §table is None:\n    §table = ITEM  #@hold"))
    level = Level("reserve", ("reserve", "cache", *(("flat",) if at < 0.25 * draw.rounds or size < 8e6 else ())), size, at + 1)
    return with_item(draw, item, Part("taken once", begin=begin, each=each), level)


NOISES = [(walk, 2), (teeth, 2), (bounded, 3), (late_fill, 1.5), (growing_table, 1), (logarithm, 1), (garbage, 1), (temporaries, 1.5), (fragments, 0.8), (kept_by_malloc, 0.8), (taken_once, 1.2)]

# Decoys: they look as if they kept something.
DECOYS = [
    ("§items = []", "§items.append(«i»)\nif len(§items) > «n»:\n    §items.clear()"),
    ("§items = []", "if «i» < 0:\n    §items.append([0.0] * 1000)"),
    ("§items = {}\n§debug = False", "if §debug:\n    §items[«i»] = [0.0] * «n»"),
    ("§items = collections.deque(maxlen=«n»)", "§items.append(«i» * 0.5)"),
    ("§items = []", "§items.append(«i» * 0.5)\n§items = §items[-«n»:]"),
    ("§items = {}", "§items[«i» % «n»] = «i» * 1.5"),
    ("§items = set()", "§items.add(«i»)\nif len(§items) >= «n»:\n    §items = set()"),
    ("§items = []", "for $n in range(«n»):\n    §items.append($n * 0.25)\nwhile §items:\n    §items.pop()"),
    ("§total = 0.0", "$some = [$n * 0.5 for $n in range(«n»)]\n§total += sum($some) / len($some)"),
    ("§items = weakref.WeakValueDictionary()", "$one = $Thing()\n§items[«i»] = $one"),
]


def decoy(draw):
    begin, each = draw.rng.choice(DECOYS)
    scope, n = draw.scope, draw.rng.randint(5, 200)
    keep = lambda text: scope.fill(text, n=n)
    imports = tuple(f"import {name}" for name in ("collections", "weakref") if name + "." in begin)
    return Part("decoy", imports, keep("class $Thing:\n    pass") if "$Thing" in each else "", keep(begin), keep(each))
