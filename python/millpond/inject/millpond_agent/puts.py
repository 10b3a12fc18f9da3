"""Which line puts things into a holder that a walk has found. Code proposes: the instructions that add to something by the name which a step of the chain has. What ran
decides: each proposed instruction is counted (hits.py) from the walk on, for a few rounds, and the holder's length is read before and after; where this Python cannot count, the
lines that ran while the survivors were made speak. A line that was not seen to run is not told."""

import functools
import sys
import types

from . import chains, circles, frames, hits, limits, link, module_hooks, readings

kAdders = frozenset(("append", "extend", "add", "insert", "appendleft", "extendleft", "update", "setdefault", "push", "put", "put_nowait", "write", "writelines", "register",
                     "frombytes", "store", "record", "__setitem__", "heappush"))
kReaders = frozenset(("get", "pop", "popitem", "popleft", "keys", "values", "items", "copy", "index", "count", "clear", "remove", "discard", "sort", "reverse", "join",
                      "tobytes", "mean", "sum", "max", "min"))
kTakers = frozenset(("pop", "popleft", "popitem", "clear", "remove", "discard"))
kAsking = frozenset(("hasattr", "len", "isinstance", "sum", "min", "max", "sorted", "enumerate", "zip", "str", "repr", "iter", "any", "all", "id", "type", "range", "bool", "getattr", "callable", "vars",
                     "reversed", "format", "tuple", "list", "set", "dict"))  # functions that only look at what they are given, or copy it
kLines = 16  # proposed for one holder
kDeep = 4  # names that a thing gets one after another
kRounds, kRoundsMost = 2, 24  # a holder is watched for
kAsked, kPatience = 12, 4  # times; until something else than what most likely puts speaks
kAgain = 8  # walks
kSeldom = 8  # times less often than another line
kWatched = 24
kCodes = 4000
kReadMost = 300  # functions whose instructions are kept
kInstructions = 3000  # read anew for one holder: about 7 ms
kRegistries = {"atexit": {"register"}}  # modules written in C, which have no code to read
kNameless = {"module": {"globals", "setattr", "exec", "__dict__", "vars"}, "modules": {"modules", "import_module", "exec_module"}}  # what is put there without a name of its own
kNamesOf = {"__warningregistry__": {"warn", "warn_explicit"}}

_watched = {}  # words of a chain -> _Watch
_told = {}  # words of a chain -> what was found last
_line_of = {}  # address of a holder -> the line that puts most into it
_again = {}  # words of a chain -> walks that have met it since
_counters = {}  # (id of code, unit) -> Counter
_search = None  # of the walk that is being told


class _Line:
    __slots__ = ("file", "line", "function", "counters", "before", "how", "counts")

    def __init__(self, code, line, how):
        self.file, self.line, self.how = code.co_filename, line, how
        self.function = getattr(code, "co_qualname", code.co_name).replace(".<locals>", "")
        self.counters = []
        self.before = 0
        self.counts = False  # whether it was counted from the beginning: only then that it did not run is known

    def ran(self):
        return sum(counter.read() for counter in self.counters) - self.before


class _Watch:
    __slots__ = ("words", "type", "chain", "tiers", "births", "sizes", "period", "gained", "asked")

    def __init__(self, words, kind, chain, tiers, births, sizes, period):
        self.words, self.type, self.chain, self.tiers, self.births, self.sizes, self.period = words, kind, chain, tiers, births, sizes, period
        self.gained = None
        self.asked = 0


# What the walk found -------------------------------------------------------------------------------------------------


def watch(row, chain, births, period, sizes):
    """A holder that a walk has found: from now on it is seen what puts into it. period: the round that it is now; sizes: items of the holder, and what lies in these."""
    words = tuple(row["chain"])
    known = _told.get(words)
    if known:
        row["puts"] = known
        _remember(chain, known)  # one of several that are called alike: those of other threads
    limits.tell(words, row)
    if row["how"] == "garbage" or not words or words in _watched or len(_watched) >= kWatched:
        return
    if known and known[0]["by"] == "counted":  # what was seen twice is looked at again now and then
        _again[words] = _again.get(words, 0) + 1
        if _again[words] > 2 and _again[words] % kAgain:
            return
    try:
        hits.prepare()
        tiers = _propose(chain) + (_ties(chain) if row.get("repeats") else [])
        if _is_fixed(chain):
            tiers = _assigning(tiers)
        limits.learn(words, row, _search.guards, chain.objects)
        if tiers:
            _watched[words] = _Watch(words, row["type"], chain, tiers, births, sizes, period)
            _arm(tiers)
    except Exception:
        link.oops()


def watch_circle(row, thing, births, period):
    """Garbage of one type, of which `thing` is one (None: it is not there any more): the lines that tie its circle."""
    words = tuple(row["chain"])
    if words in _told:
        row["puts"] = _told[words]
    if thing is None or not words or words in _watched or len(_watched) >= kWatched:
        return
    try:
        hits.prepare()
        tiers = _tying(circles.ring(thing))
        if tiers:
            _watched[words] = _Watch(words, row["type"], None, tiers, births, (None, None), period)
            _arm(tiers)
    except Exception:
        link.oops()


def _remember(chain, found):
    if chain is not None and chain.found and len(_line_of) < kCodes:
        _line_of[chain.found[0][0]] = found[0]


def line_of(container):
    """The line that was seen to put things into it: {file, line, function, text}; None: not known."""
    found = _line_of.get(id(container))
    if found is None or found["by"] == "only":
        return None
    return {"file": found["file"], "line": found["line"], "function": found["function"], "text": found["text"], "found_by": "ran"}


def watching():
    return bool(_watched)


def told():
    """A walk has been told. What was read of the program's code stays for the next ones, unless it is much or there is more code now."""
    global _search
    if _search is not None and (_search.modules != len(sys.modules) or _search.walks >= kAgain * kWatched or len(_search.read) > kReadMost):
        _search = None


def after_period(series, lengths):
    """At the end of a round: what has been seen is told once it suffices. lengths(chain): as watch() got the sizes, now."""
    for words, watched in list(_watched.items()):
        rounds = series.count - watched.period
        if rounds < kRounds:
            continue
        if watched.asked >= kAsked:
            finish(series, lengths, words)
            continue
        watched.asked += 1
        ran = [any(line.ran() > 0 for line in tier) for tier in watched.tiers]
        seen = not hits.works() or ran[0] or (any(ran) and watched.asked >= kPatience)  # what has run only a few times yet is not counted
        if (seen and _gain(watched, lengths) != 0) or rounds >= kRoundsMost:
            finish(series, lengths, words)


def _gain(watched, lengths):
    """How many items more it has; where that does not rise, how much more lies in them. None: it does not say."""
    if watched.sizes[0] is None:
        return None
    own, inner = (None if now is None or then is None else now - then for now, then in zip(lengths(watched.chain), watched.sizes))
    return own if own is None or own > 0 or inner is None else inner


def finish(series, lengths, words=None):
    """Says what was seen of this holder, or of all. Where one was watched for less than a round, that a line did not run says nothing."""
    rows = []
    for each in [words] if words is not None else list(_watched):
        watched = _watched.pop(each)
        if series is None:
            continue
        if series.count <= watched.period:
            for line in [line for tier in watched.tiers for line in tier]:
                line.counts = False
        else:
            watched.gained = _gain(watched, lengths)
        found = _decide(watched, series.count - watched.period)
        if found and (found[0]["by"] == "counted" or each not in _told or _told[each][0]["by"] == "only"):
            _told[each] = found
            _remember(watched.chain, found)
            rows.append({"chain": list(each), "type": watched.type, "gained": watched.gained, "puts": found})
    if not _watched:
        _counters.clear()
    if rows:
        link.note({"note": "puts", "holders": rows})


def _decide(watched, rounds):
    """The lines that ran while the holder gained, each with its share; those that add by themselves before those that hand it on. What assigns it speaks when nothing else could have
    put something in, or when it got no longer: then what is inside of it did."""
    waits = watched.gained is not None and watched.gained <= 0
    for at, tier in enumerate(watched.tiers):
        assigns = tier[0].how == "set"
        if waits != assigns and (waits or at > 0):
            continue
        if assigns and waits and rounds < kRounds:
            continue
        seen = [(line, times, "counted") for line, times in ((line, line.ran()) for line in tier) if times > 0]
        counted = any(line.counts for line in tier)
        if not seen and not counted:
            seen = _by_births(tier, watched.births, assigns and at + 1 < len(watched.tiers))
        if not seen and len({(line.file, line.line) for line in tier}) == 1 and (assigns or not counted) and not (waits and len(watched.tiers) > 1) and not (assigns and at + 1 < len(watched.tiers)):
            seen = [(tier[0], 0, "only")]
        if seen:
            return _shares(seen, watched.gained) if watched.chain is not None else _closing(_shares(seen, None))
    return []


def _closing(rows):
    """Of lines that tie circles, those first that ran least: a circle is closed once, and what ran for every object set it up. Which ran hardly ever is not how most are closed."""
    most = max(row["seen"] for row in rows)
    return sorted(rows, key=lambda row: (row["seen"] * kSeldom < most, row["seen"]))


def _by_births(tier, births, exactly):
    """Lines that ran while survivors were made; or, unless exactly these are asked for, the only one of them in a function that did: of several there it is not known which ran."""
    exact = [(line, 1, "births") for line in tier if (line.file, line.line) in births]
    ran = {(file, function) for file, _, function in births.functions}
    inside = {(line.file, line.line): line for line in tier if (line.file, line.function.rpartition(".")[2]) in ran}
    return exact or [(line, 1, "births") for line in inside.values() if len(inside) == 1 and not exactly]


def _shares(seen, gained):
    total = sum(times for _, times, _ in seen) or 1
    rows = {}
    for line, times, by in seen:
        row = rows.setdefault((line.file, line.line), {"file": line.file, "line": line.line, "function": line.function, "text": frames.text(line.file, line.line), "how": line.how,
                                                       "by": by, "seen": 0, "gained": None})
        row["seen"] += times
        if module_hooks.has(line.file, line.line):
            row["hook"] = True
        if gained is not None:
            row["gained"] = round(gained * row["seen"] / total, 1)
    return sorted(rows.values(), key=lambda row: -row["seen"])[:4]


def _arm(tiers):
    for line in [line for tier in tiers for line in tier]:
        line.before = sum(counter.read() for counter in line.counters)
        line.counts = any(counter.begun for counter in line.counters)


# What could put ------------------------------------------------------------------------------------------------------


def _propose(chain):
    """Lists of lines, the likeliest first: they add to the holder by the nearest name it has; they call the library that does; they hand it on; they assign it."""
    global _search
    if _search is None:
        _search = _Search()
    search = _search
    search.begin()
    direct, calls, handed, assigned = [], [], [], []
    steps = chain.steps
    path = ()  # keys of the items that lead from the last step with a name to the holder
    for at, step in enumerate(steps):
        if step.kind in ("item", "key"):
            path = (step.key,) + path
            continue
        if step.kind == "registry":
            calls += search.calling(kRegistries.get(step.name, set()))
        elif step.kind == "global" and step.name in kNamesOf:
            calls += search.calling(kNamesOf[step.name])
        elif step.kind in ("attribute", "class_attribute", "thread_local") and step.name:
            names = _names_that_put(search, step.of, step.name) if step.kind != "thread_local" and _is_library(step.of) else ()
            if names:
                calls += search.puts(step.name, True, path=path)[0] + search.calling(names, _called(steps, at))
            else:
                direct, handed, assigned = search.puts(step.name, True, owner=step.of, called=_called(steps, at), path=path)
        elif step.kind in ("local", "frame", "closure", "default") and step.name:
            code = step.where if type(step.where) is types.CodeType else getattr(step.where, "__code__", None)
            if code is not None and frames.has_source(code.co_filename):
                direct, handed, assigned = search.puts(step.name, False, within=code, free=step.kind == "closure", path=path)
        elif step.kind == "global" and step.name:
            module = sys.modules.get(step.where)
            if module is not None and frames.user_module(module):
                direct, handed, assigned = search.puts(step.name, False, path=path)
                more = search.puts(step.name, True, path=path)
                direct, handed = direct + more[0], handed + more[1]
            else:
                calls += search.calling(_functions_that_put(search, module, step.name))
        elif step.kind == "cache" and step.where is not None:
            direct = search.cached(step.where)
        elif step.kind in kNameless:
            calls += search.calling(kNameless[step.kind])
        if direct or handed or assigned or (calls and at + 1 == len(steps)):
            break
        path = ()
    return [tier[:kLines] for tier in (direct, calls, handed, assigned) if tier]


def _is_fixed(chain):
    """Whether the holder is a single block that nothing makes larger in its place: a text, an array. Then only who assigns another one does."""
    holder = chain.objects[0] if chain.objects else None
    kind = type(holder)
    return kind in (str, bytes, tuple) or (kind.__module__ == "numpy" and kind.__name__ == "ndarray" and not holder.dtype.hasobject)


def _assigning(tiers):
    lines = _unique([line for tier in tiers for line in tier if line.how in ("set", "aug", "resize")])
    return [lines] if lines else tiers


def _ties(chain):
    """Of objects that hold the next of their type, one after another: the lines that tie a new one to the last, by the attribute that they hold it by. They speak when no line that
    assigns the first one ran: a chain grows at one of its ends."""
    first = chain.objects[0]
    if first is None or type(first) in (tuple, list, dict):
        return []
    lines, made = [], []  # elsewhere; where the objects are made
    for name in chains.attributes_of_own_type(first):
        for reader in _search.readers(name):
            found = [_search.line(reader, at, "tie") for at in reader.stores(name, True) if not reader.stores_constant(at)]
            (made if reader.code.co_name == "__init__" else lines).extend(found)
    return [_unique(tier)[:kLines] for tier in (lines, made) if tier]


def _tying(steps):
    """The lines that tie a circle of these steps together, by the names that its parts hold each other by; of one function the last first: with it the circle is closed.
    Lines where the objects are made speak when no other ran: what they assign there may be nothing yet."""
    global _search
    if _search is None:
        _search = _Search()
    _search.begin()
    lines = []
    for at, step in enumerate(steps):
        if step.kind not in ("attribute", "class_attribute") or not step.name or step.of is None or _is_library(step.of):
            continue
        if steps[at - 1].kind in ("item", "key"):
            lines += _search.puts(step.name, True, owner=step.of)[0]
            continue
        codes = _codes_of(step.of)
        for reader in _search.readers(step.name):
            lines += [_search.line(reader, at, "tie") for at in reader.stores(step.name, True) if not reader.stores_constant(at) and reader.fits(at, codes, ())]
    lines = sorted(_unique(lines), key=lambda line: (line.file, -line.line))
    made = [line for line in lines if line.function.rpartition(".")[2] == "__init__"]
    return [tier[:kLines] for tier in ([line for line in lines if line not in made], made) if tier]


def _is_library(kind):
    if kind is None:
        return False
    module = sys.modules.get(kind.__dict__.get("__module__") if type(kind.__dict__.get("__module__")) is str else "builtins")
    return module is None or not frames.user_module(module)


def _names_that_put(search, kind, name):
    """The functions of a library's class that add to this attribute, and those that call them."""
    functions = {}
    for base in kind.__mro__:
        for key, value in list(vars(base).items()):
            code = getattr(getattr(value, "__func__", value), "__code__", None)
            if type(code) is types.CodeType:
                functions.setdefault(key, code)
    return _with_callers(functions, {key for key, code in functions.items() if name in code.co_names and _adds(search, code, name)}, kind.__name__)


def _functions_that_put(search, module, name):
    functions = {}
    for key, value in list(vars(module).items()) if module is not None else ():
        parts = {key: value} if type(value) is types.FunctionType else dict(vars(value)) if type(value) is type and value.__dict__.get("__module__") == module.__name__ else {}
        functions.update((part, function.__code__) for part, function in parts.items() if type(function) is types.FunctionType)
    return _with_callers(functions, {key for key, code in functions.items() if name in code.co_names and _adds(search, code, name)}, "")


def _with_callers(functions, names, constructor):
    names = set(names)
    for _ in range(3):
        more = {key for key, code in functions.items() if names.intersection(code.co_names)}
        if more <= names:
            break
        names |= more
    if "__init__" in names:
        names.add(constructor)
    return {name for name in names if not name.startswith("__")} if len(names) <= 32 else set()


def _adds(search, code, name):
    if search.left <= 0:
        return False
    reader = search.reader(code)
    uses = [reader.use(at, depth) for at, depth in reader.loads(name, True) + reader.loads(name, False)]
    return any(use.how in ("item", "aug") or (use.how == "method" and use.name in kAdders) for use in uses) or bool(reader.stores(name, True)) and code.co_name != "__init__"


def _arguments(code, place):
    """Names of the arguments of a function that a call may give: the one at that place, where it is known; a method has one more before it."""
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    own = 1 if names[:1] in (("self",), ("cls",)) else 0
    return names[own:] if place is None or place + own >= code.co_argcount else (names[place + own],)


class _Search:
    """The user's code objects, read for one walk."""

    def __init__(self):
        self.codes, self.makers = _user_codes()
        self.modules, self.walks = len(sys.modules), 0
        self.left = kInstructions
        self.read = {}  # id of code -> Reader
        self.guards = limits.Guards()

    def begin(self):
        """For one holder: how much may be read anew."""
        self.walks += 1
        self.left = kInstructions
        self.guards = limits.Guards()

    def reader(self, code):
        if id(code) not in self.read:
            self.read[id(code)] = readings.Reader(code)
            self.left -= len(self.read[id(code)].parts)
        return self.read[id(code)]

    def readers(self, name):
        for code in self.codes:
            if self.left > 0 and (name in code.co_names or name in code.co_varnames or name in code.co_freevars or name in code.co_cellvars):
                yield self.reader(code)

    def puts(self, name, attribute, within=None, free=False, owner=None, called=(), path=()):
        """(lines that add to what has this name, that hand it to a call, that assign it). owner: the type whose attribute it is; called: the names its object has. Where lines
        are of that object by its name, or of methods of that type, the others are left out. path: the keys that lead from it to the holder; lines with others are left out."""
        direct, handed, assigned = [], [], []
        codes = _codes_of(owner) if owner is not None else ()
        trail = _Trail(self, path)
        for reader in self.readers(name):
            code = reader.code
            if within is not None and code is not within and not (name in code.co_freevars and (free or _inside(within, code))):
                if not (free and name in code.co_cellvars):
                    continue
            for at, depth in reader.loads(name, attribute):
                fits = reader.fits(at, codes, called) if owner is not None else 1
                if fits:
                    trail.begin()
                    trail.used(reader, at, depth, ())
                    for into, found in zip((direct, handed, assigned), (trail.direct, trail.handed, trail.assigned)):
                        into += [((fits, fits_path), line) for fits_path, line in found]
            for at in reader.stores(name, attribute) if not path else ():
                fits = reader.fits(at, codes, called) if owner is not None else 1
                if fits:
                    assigned.append(((fits, 2), self.line(reader, at, "set")))
        return _best(direct), _best(handed), _best(assigned)

    def codes_called(self, name):
        """Functions by that name, and what makes objects of a class by that name."""
        return [code for code in self.codes if code.co_name == name and code.co_argcount] + self.makers.get(name, [])

    def cached(self, function):
        """Where a cached function is defined: what it returns for the first time is kept, each time that its body runs."""
        code = getattr(function, "__code__", None)
        if type(code) is not types.CodeType or not frames.has_source(code.co_filename):
            return self.calling({getattr(function, "__name__", "")})
        reader = self.reader(code)
        return [self.line(reader, None, "cache")]

    def line(self, reader, at, how):
        """The line of an instruction, counted by it or by the nearest on its line that can be. at None: that of the function, counted by its first instructions."""
        code = reader.code
        made = _Line(code, reader.lines[at] if at is not None else code.co_firstlineno, how)
        if hits.works():
            same = [i for i in range(len(reader.parts)) if (at is None or reader.lines[i] == reader.lines[at]) and hits.counts(reader.parts[i].opcode)]
            if same:
                best = min(same, key=lambda i: (abs(i - at), i < at)) if at is not None else same[0]
                unit = reader.parts[best].offset // 2
                key = id(code), unit
                if key not in _counters:
                    _counters[key] = hits.Counter(code, unit, reader.parts[best].opcode)
                made.counters = [_counters[key]]
        return made

    def calling(self, names, called=()):
        """Lines that call something by one of these names; those alone that do it with what is called so, if there are some."""
        found = []
        for name in sorted(names):
            for reader in self.readers(name):
                for at, part in enumerate(reader.parts):
                    if part.argval == name and part.opname in ("LOAD_METHOD", "LOAD_ATTR", "LOAD_GLOBAL", "LOAD_NAME"):
                        found.append((2 if called and called & reader.called_before(at) else 1, self.line(reader, at, name)))
        return _best(found)


class _Trail:
    """What becomes of a thing, under all the names that it gets one after another: lines that add to the holder inside it, that hand it on, that assign it, each with how well the
    keys fit that lead to it (2: they are the holder's, 1: that cannot be told)."""

    def __init__(self, search, path):
        self.search, self.path = search, path
        self.seen = set()
        self.begin()

    def begin(self):
        self.direct, self.handed, self.assigned = [], [], []

    def _fits(self, path):
        """Whether this way leads to the holder or into it: 0, another one."""
        pairs = list(zip(path, self.path))
        if any(a is not None and b is not None and a != b for a, b in pairs):
            return 0
        return 2 if len(path) >= len(self.path) and all(a == b for a, b in pairs) else 1

    def used(self, reader, at, depth, before, deep=0):
        use, search = reader.use(at, depth), self.search
        path = before + use.path
        fits = self._fits(path)
        if use.how is None or not fits:
            return
        following = reader.parts[use.at + 1] if use.at + 1 < len(reader.parts) else None
        if len(path) >= len(self.path) and (use.how in ("item", "delete") or (use.how == "method" and use.name in kTakers)):
            search.guards.takes(reader, use)
        if use.how == "method" and following is not None and following.opname.startswith("STORE_") and type(following.argval) is str:  # add = kept.append
            self.direct += [(fits, search.line(reader, other, use.name)) for other, _ in reader.loads(following.argval, False) if other > use.at] if use.name in kAdders else []
        elif use.how == "item" and len(path) < len(self.path):  # the holder itself is put in its place, or something beside it
            if self._fits(path + (use.key,)):
                self.assigned.append((self._fits(path + (use.key,)), search.line(reader, use.at, "set")))
        elif use.how in ("item", "aug") or (use.how == "method" and use.name in kAdders):
            self.direct.append((fits, search.line(reader, use.at, use.name or use.how)))
        elif use.how == "method" and use.name not in kReaders and use.place:
            self.handed.append((fits, search.line(reader, use.at, use.name)))
        elif use.how == "alias":
            for name in use.name:
                self.named(reader.code, name, path, deep + 1)
        elif use.how == "attribute":
            self.attribute(use.name, path, deep + 1)
        elif use.how == "pass":
            callee = reader.callee(use.at)
            callees = {callee} if callee is not None else reader.called_before(use.at)
            if callee == "len" and len(path) >= len(self.path):
                search.guards.asks(reader, use)
            if callees and callees <= kAsking | {reader.parts[at].argval} and callee != reader.parts[at].argval:
                return
            for callee in callees:
                for code in search.codes_called(callee):
                    for argument in _arguments(code, use.place):
                        self.named(code, argument, path, deep + 1)
            self.handed.append((fits, search.line(reader, use.at, "call")))

    def named(self, code, name, path, deep):
        """It has this name too, in this function and those inside it."""
        if deep > kDeep or (id(code), name, path) in self.seen:
            return
        self.seen.add((id(code), name, path))
        for other in [code] + [inner for inner in self.search.codes if name in inner.co_freevars and _inside(code, inner)]:
            if self.search.left > 0:
                reader = self.search.reader(other)
                for at, depth in reader.loads(name, False):
                    self.used(reader, at, depth, path, deep)

    def attribute(self, name, path, deep):
        """It is an attribute of something too, by this name."""
        if deep > kDeep or (None, name, path) in self.seen:
            return
        self.seen.add((None, name, path))
        for reader in self.search.readers(name):
            for at, depth in reader.loads(name, True):
                self.used(reader, at, depth, path, deep)


def _best(lines):
    best = max((fits for fits, _ in lines), default=None)
    return _unique([line for fits, line in lines if fits == best])


def _called(steps, at):
    """The names of the object whose attribute a step is."""
    further = next((step for step in steps[at + 1:] if step.kind not in ("item", "key")), None)
    names = {further.name} if further is not None and further.name and further.kind != "module" else set()
    if steps[at].kind == "class_attribute":
        names |= {base.__name__ for base in steps[at].of.__mro__} | {"cls"}
    return names


def _codes_of(kind):
    """The code of a class's methods, and of those it inherits."""
    found = set()
    for base in kind.__mro__:
        for value in list(vars(base).values()):
            code = getattr(getattr(value, "__func__", getattr(value, "fget", None) or value), "__code__", None)
            if type(code) is types.CodeType:
                found.add(id(code))
    return found


def _unique(lines):
    return list({(line.file, line.line, tuple((id(counter.code), counter.unit) for counter in line.counters)): line for line in lines}.values())


def _inside(outer, code):
    return any(part is code or (type(part) is types.CodeType and _inside(part, code)) for part in outer.co_consts if type(part) is types.CodeType)


def _user_codes():
    """The code of all functions of the user's that can be reached from his modules and from what runs; and of what makes objects of his classes, by their names."""
    waiting, seen, found, makers = [], set(), [], {}
    for module in frames.user_modules():
        waiting += list(vars(module).values())
    for frame in list(sys._current_frames().values()):
        while frame is not None:
            waiting.append(frame.f_code)
            frame = frame.f_back
    while waiting and len(seen) < kCodes * 8 and len(found) < kCodes:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        kind = type(thing)
        if kind is types.CodeType:
            if frames.has_source(thing.co_filename):
                found.append(thing)
                waiting += [part for part in thing.co_consts if type(part) is types.CodeType]
        elif kind is types.FunctionType:
            waiting.append(thing.__code__)
            if thing.__closure__:
                waiting += [value for value in (_content(cell) for cell in thing.__closure__) if type(value) in (types.FunctionType, types.MethodType)]
        elif kind in (staticmethod, classmethod, types.MethodType):
            waiting.append(thing.__func__)
        elif kind is property:
            waiting += [thing.fget, thing.fset]
        elif kind is chains.kCached:
            waiting.append(getattr(thing, "__wrapped__", None))
        elif kind is functools.partial:
            waiting.append(thing.func)
        elif isinstance(thing, type) and not _is_library(thing):
            waiting += list(vars(thing).values())
            made = [getattr(vars(thing).get(name), "__code__", None) for name in ("__init__", "__new__")]
            makers.setdefault(thing.__name__, []).extend(code for code in made if type(code) is types.CodeType and code.co_argcount)
    return found, makers


def _content(cell):
    try:
        return cell.cell_contents
    except ValueError:
        return None
