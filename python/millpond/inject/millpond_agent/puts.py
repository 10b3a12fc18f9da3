"""Which line puts things into a holder that a walk has found. Code proposes: the instructions that add to something by the name which a step of the chain has. What ran
decides: each proposed instruction is counted (hits.py) from the walk on, for a few rounds, and the holder's length is read before and after; where this Python cannot count, the
lines that ran while the survivors were made speak. A line that was not seen to run is not told."""

import dis
import functools
import sys
import types

from . import chains, frames, hits, link

kAdders = frozenset(("append", "extend", "add", "insert", "appendleft", "extendleft", "update", "setdefault", "push", "put", "put_nowait", "write", "writelines", "register",
                     "frombytes", "store", "record", "__setitem__", "heappush"))
kReaders = frozenset(("get", "pop", "popitem", "popleft", "keys", "values", "items", "copy", "index", "count", "clear", "remove", "discard", "sort", "reverse", "join",
                      "tobytes", "mean", "sum", "max", "min"))
kAsking = frozenset(("hasattr", "len", "print", "isinstance", "sum", "min", "max", "sorted", "enumerate", "zip", "str", "repr", "iter", "any", "all", "id", "type", "range", "bool",
                     "reversed", "format", "tuple", "list", "set", "dict"))  # functions that only look at what they are given, or copy it
kLines = 16  # proposed for one holder
kRounds, kRoundsMost = 2, 24  # a holder is watched for
kAsked = 12  # times
kWatched = 16
kCodes = 4000
kInstructions = 6000  # read for one walk: about 15 ms
kRegistries = {"atexit": {"register"}}  # modules written in C, which have no code to read
kNamesOf = {"__warningregistry__": {"warn", "warn_explicit"}}

_watched = {}  # words of a chain -> _Watch
_told = {}  # words of a chain -> what was found last
_counters = {}  # (id of code, unit) -> Counter
_search = None  # of the walk that is being told


class _Line:
    __slots__ = ("file", "line", "function", "counters", "before", "how")

    def __init__(self, code, line, how):
        self.file, self.line, self.how = code.co_filename, line, how
        self.function = getattr(code, "co_qualname", code.co_name).replace(".<locals>", "")
        self.counters = []
        self.before = 0

    def ran(self):
        return sum(counter.read() for counter in self.counters) - self.before


class _Watch:
    __slots__ = ("words", "type", "found", "tiers", "births", "length", "period", "gained", "asked")

    def __init__(self, words, kind, found, tiers, births, length, period):
        self.words, self.type, self.found, self.tiers, self.births, self.length, self.period = words, kind, found, tiers, births, length, period
        self.gained = None
        self.asked = 0


# What the walk found -------------------------------------------------------------------------------------------------


def watch(row, chain, births, period):
    """A holder that a walk has found: from now on it is seen what puts into it."""
    words = tuple(row["chain"])
    known = _told.get(words)
    if known:
        row["puts"] = known
    if row["how"] == "garbage" or not words or words in _watched or len(_watched) >= kWatched:
        return
    try:
        hits.prepare()
        tiers = _propose(chain)
        if tiers:
            _watched[words] = _Watch(words, row["type"], chain.found, tiers, births, row.get("length"), period)
            _arm(tiers)
    except Exception:
        link.oops()


def watching():
    return bool(_watched)


def told():
    """A walk has been told."""
    global _search
    _search = None


def after_period(series, lengths):
    """At the end of a round: what has been seen is told once it suffices. lengths(found): how long the holder is now, or None."""
    for words, watched in list(_watched.items()):
        rounds = series.count - watched.period
        if rounds < kRounds:
            continue
        if watched.asked >= kAsked:
            finish(series, lengths, words)
            continue
        watched.asked += 1
        seen = not hits.works() or any(line.ran() > 0 for tier in watched.tiers for line in tier)
        if (seen and _gain(watched, lengths) != 0) or rounds >= kRoundsMost:
            finish(series, lengths, words)


def _gain(watched, lengths):
    now = lengths(watched.found) if watched.length is not None else None
    return None if now is None else now - watched.length


def finish(series, lengths, words=None):
    """Says what was seen of this holder, or of all. A holder that was watched for less than a round has told nothing."""
    rows = []
    for each in [words] if words is not None else list(_watched):
        watched = _watched.pop(each)
        if series is None or series.count <= watched.period:
            continue
        watched.gained = _gain(watched, lengths)
        found = _decide(watched, series.count - watched.period)
        if found and (found[0]["by"] == "counted" or each not in _told):
            _told[each] = found
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
        counted = any(counter.begun for line in tier for counter in line.counters)
        if not seen and not counted:
            seen = [(line, 1, "births") for line in tier if (line.file, line.line) in watched.births]
        if not seen and len({(line.file, line.line) for line in tier}) == 1 and (assigns or not counted):
            seen = [(tier[0], 0, "only")]
        if seen:
            return _shares(seen, watched.gained)
    return []


def _shares(seen, gained):
    total = sum(times for _, times, _ in seen) or 1
    rows = {}
    for line, times, by in seen:
        row = rows.setdefault((line.file, line.line), {"file": line.file, "line": line.line, "function": line.function, "text": frames.text(line.file, line.line), "how": line.how,
                                                       "by": by, "seen": 0, "gained": None})
        row["seen"] += times
        if gained is not None:
            row["gained"] = round(gained * row["seen"] / total, 1)
    return sorted(rows.values(), key=lambda row: -row["seen"])[:4]


def _arm(tiers):
    for line in [line for tier in tiers for line in tier]:
        line.before = sum(counter.read() for counter in line.counters)


# What could put ------------------------------------------------------------------------------------------------------


def _propose(chain):
    """Lists of lines, the likeliest first: they add to the holder by the nearest name it has; they call the library that does; they hand it on; they assign it."""
    global _search
    if _search is None:
        _search = _Search()
    search = _search
    direct, calls, handed, assigned = [], [], [], []
    steps = chain.steps
    for at, step in enumerate(steps):
        if step.kind == "registry":
            calls += search.calling(kRegistries.get(step.name, set()))
        elif step.kind == "global" and step.name in kNamesOf:
            calls += search.calling(kNamesOf[step.name])
        elif step.kind == "thread_local" or (step.kind in ("attribute", "class_attribute") and step.name and not _is_library(step.of)):
            direct, handed, assigned = search.puts(step.name, True, owner=step.of, called=_called(steps, at))
        elif step.kind in ("attribute", "class_attribute") and step.name:
            calls += search.puts(step.name, True)[0] + search.calling(_names_that_put(search, step.of, step.name), _called(steps, at))
        elif step.kind in ("local", "frame", "closure", "default") and step.name:
            code = step.where if type(step.where) is types.CodeType else getattr(step.where, "__code__", None)
            if code is not None and frames.has_source(code.co_filename):
                direct, handed, assigned = search.puts(step.name, False, within=code, free=step.kind == "closure")
        elif step.kind == "global" and step.name:
            module = sys.modules.get(step.where)
            if module is not None and frames.user_module(module):
                direct, handed, assigned = search.puts(step.name, False)
                more = search.puts(step.name, True)
                direct, handed = direct + more[0], handed + more[1]
            else:
                calls += search.calling(_functions_that_put(search, module, step.name))
        elif step.kind == "cache" and step.where is not None:
            calls += search.calling({getattr(step.where, "__name__", "")})
        if direct or handed or assigned or (calls and at + 1 == len(steps)):
            break
    return [tier[:kLines] for tier in (direct, calls, handed, assigned) if tier]


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
    functions = {key: value.__code__ for key, value in list(vars(module).items()) if type(value) is types.FunctionType} if module is not None else {}
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
    return any(how in ("item", "aug") or (how == "method" and of in kAdders) for how, of, _ in uses) or bool(reader.stores(name, True)) and code.co_name != "__init__"


class _Search:
    """The user's code objects, read for one chain."""

    def __init__(self):
        self.codes = _user_codes()
        self.left = kInstructions
        self.read = {}  # id of code -> _Reader

    def reader(self, code):
        if id(code) not in self.read:
            self.read[id(code)] = _Reader(code)
            self.left -= len(self.read[id(code)].parts)
        return self.read[id(code)]

    def readers(self, name):
        for code in self.codes:
            if self.left > 0 and (name in code.co_names or name in code.co_varnames or name in code.co_freevars or name in code.co_cellvars):
                yield self.reader(code)

    def puts(self, name, attribute, within=None, free=False, owner=None, called=()):
        """(lines that add to what has this name, that hand it to a call, that assign it). owner: the type whose attribute it is; called: the names its object has. Where lines
        are of that object by its name, or of methods of that type, the others are left out."""
        direct, handed, assigned = [], [], []
        codes = _codes_of(owner) if owner is not None else ()
        for reader in self.readers(name):
            code = reader.code
            if within is not None and code is not within and not (name in code.co_freevars and (free or _inside(within, code))):
                if not (free and name in code.co_cellvars):
                    continue
            for at, depth in reader.loads(name, attribute):
                fits = reader.fits(at, codes, called) if owner is not None else 1
                if fits:
                    added, passed = [], []
                    self._used(reader, at, depth, added, passed)
                    direct += [(fits, line) for line in added]
                    handed += [(fits, line) for line in passed]
            for at in reader.stores(name, attribute):
                fits = reader.fits(at, codes, called) if owner is not None else 1
                if fits:
                    assigned.append((fits, reader.line(at, "set")))
        return _best(direct), _best(handed), _best(assigned)

    def _used(self, reader, at, depth, direct, handed, deep=0):
        how, name, where = reader.use(at, depth)
        following = reader.parts[where + 1] if where + 1 < len(reader.parts) else None
        if how == "method" and following is not None and following.opname.startswith("STORE_") and type(following.argval) is str:  # add = kept.append
            direct += [reader.line(other, name) for other, _ in reader.loads(following.argval, False) if other > where] if name in kAdders else []
        elif how in ("item", "aug") or (how == "method" and name in kAdders):
            direct.append(reader.line(where, how if how != "method" else name))
        elif how == "method" and name not in kReaders:
            handed.append(reader.line(where, name))
        elif how == "alias" and deep < 2 and type(name) is str:
            for other, further in reader.loads(name, False):
                if other > where:
                    self._used(reader, other, further, direct, handed, deep + 1)
        elif how == "pass":
            inner = []
            callees = reader.called_before(where)
            if callees and callees <= kAsking | {reader.parts[at].argval}:
                return
            for callee in callees if deep < 2 else ():
                for code in self.codes:
                    if code.co_name == callee and code.co_argcount:
                        into = self.reader(code)
                        for argument in code.co_varnames[: code.co_argcount]:
                            if argument != "self":
                                for other, further in into.loads(argument, False):
                                    got = into.use(other, further)
                                    if got[0] in ("item", "aug") or (got[0] == "method" and got[1] in kAdders):
                                        inner.append(into.line(got[2], got[1] or got[0]))
            direct += inner
            handed.append(reader.line(where, "call"))

    def calling(self, names, called=()):
        """Lines that call something by one of these names; those alone that do it with what is called so, if there are some."""
        found = []
        for name in sorted(names):
            for reader in self.readers(name):
                for at, part in enumerate(reader.parts):
                    if part.argval == name and part.opname in ("LOAD_METHOD", "LOAD_ATTR", "LOAD_GLOBAL", "LOAD_NAME"):
                        found.append((2 if called and called & reader.called_before(at) else 1, reader.line(at, name)))
        return _best(found)


def _best(lines):
    best = max((fits for fits, _ in lines), default=0)
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
    """The code of all functions of the user's that can be reached from his modules and from what runs."""
    waiting, seen, found = [], set(), []
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
    return found


def _content(cell):
    try:
        return cell.cell_contents
    except ValueError:
        return None


class _Reader:
    """The instructions of a code object, and what becomes of a value that one of them loads."""

    def __init__(self, code):
        self.code = code
        self.parts = list(dis.get_instructions(code))
        self.lines = []
        line = code.co_firstlineno
        for part in self.parts:
            positions = getattr(part, "positions", None)
            if positions is not None and positions.lineno:
                line = positions.lineno
            elif positions is None and part.starts_line:
                line = part.starts_line
            self.lines.append(line)

    def loads(self, name, attribute):
        """Where it is loaded, and how deep it lies on the stack then: [(index, depth)]."""
        found = []
        for at, part in enumerate(self.parts):
            if attribute:
                if part.opname == "LOAD_ATTR" and part.argval == name or (part.opname == "LOAD_METHOD" and part.argval == name):
                    found.append((at, 1))
            elif part.opname in ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CLASSDEREF") or part.opname.startswith("LOAD_FAST"):
                if part.argval == name:
                    found.append((at, 1))
                elif type(part.argval) is tuple and name in part.argval:
                    found.append((at, 1 if part.argval[-1] == name else 2))
            elif part.opname == "STORE_FAST_LOAD_FAST" and type(part.argval) is tuple and part.argval[-1] == name:
                found.append((at, 1))
        return found

    def fits(self, at, codes, called):
        """Whether the attribute that is loaded or stored there is of the object that is meant: 2 by its name or because it is a method's own, 0 it is another type's own, 1 that cannot be told."""
        before = self.parts[at - 1] if at else None
        while before is not None and before.opname in ("COPY", "DUP_TOP", "SWAP", "ROT_TWO", "ROT_THREE") and at > 1:
            at -= 1
            before = self.parts[at - 1]
        name = before.argval if before is not None and before.opname.startswith("LOAD_") else None
        name = name[-1] if type(name) is tuple and name else name
        code = self.code
        if code.co_argcount and before is not None and before.opname.startswith("LOAD_FAST") and name == code.co_varnames[0] == "self":
            return 2 if id(code) in codes else 0 if codes else 1
        return 2 if name in called else 1

    def stores(self, name, attribute):
        return [at for at, part in enumerate(self.parts)
                if (part.opname == "STORE_ATTR" and part.argval == name if attribute else
                    part.opname.startswith("STORE_") and part.opname != "STORE_ATTR" and (part.argval == name or (type(part.argval) is tuple and part.opname.startswith("STORE_FAST") and
                                                                                          name in (part.argval if "LOAD" not in part.opname else part.argval[:1]))))]

    def use(self, at, depth):
        """(how, name, index): method (one of it is called or taken), item (something is stored in it), aug, alias (it gets another name), pass (to a call), None."""
        for now in range(at + 1, min(at + 200, len(self.parts))):
            part = self.parts[now]
            name = part.opname
            if depth == 1 and name in ("LOAD_ATTR", "LOAD_METHOD"):
                return "method", part.argval, now
            if depth == 2 and (name == "BINARY_SUBSCR" or (name == "BINARY_OP" and part.argrepr == "[]")):
                depth = 1
                continue
            if depth == 2 and name == "STORE_SUBSCR":
                return "item", None, now
            if depth == 2 and (name.startswith("INPLACE_") or (name == "BINARY_OP" and part.argrepr.endswith("="))):
                return "aug", None, now
            if depth == 1 and name.startswith("STORE_"):
                return "alias", part.argval if type(part.argval) is str else part.argval[0] if type(part.argval) is tuple else None, now
            if name.startswith(("RETURN", "RAISE", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE", "POP_TOP", "GET_ITER", "FOR_ITER")) and depth <= 1:
                return None, None, now
            try:
                effect = dis.stack_effect(part.opcode, part.arg if part.opcode >= dis.HAVE_ARGUMENT else None, jump=False)
            except ValueError:
                return None, None, now
            if "CALL" in name and name != "LOAD_CALL" and depth + effect < 2:
                return "pass", None, now
            depth += effect
            if depth < 1:
                return None, None, now
        return None, None, at

    def called_before(self, at):
        """Names that the call there may be of or with: those loaded before it on its line."""
        return {self.parts[i].argval for i in range(max(0, at - 24), at) if self.lines[i] == self.lines[at] and self.parts[i].opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_METHOD", "LOAD_ATTR", "LOAD_DEREF")
                and type(self.parts[i].argval) is str}

    def line(self, at, how):
        """The line of an instruction, counted by it or by the nearest on its line that can be."""
        made = _Line(self.code, self.lines[at], how)
        if hits.works():
            same = [i for i in range(len(self.parts)) if self.lines[i] == self.lines[at] and hits.counts(self.parts[i].opcode)]
            if same:
                best = min(same, key=lambda i: (abs(i - at), i < at))
                unit = self.parts[best].offset // 2
                key = id(self.code), unit
                if key not in _counters:
                    _counters[key] = hits.Counter(self.code, unit, self.parts[best].opcode)
                made.counters = [_counters[key]]
        return made
