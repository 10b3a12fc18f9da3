"""The instructions of a code object, and what becomes of a value that one of them loads: a method of it is called, something is stored in it, it gets another name, it is handed
on. A few places of the stack are followed, as far as the straight way through the code leads."""

import dis

kGives = frozenset(("get", "__getitem__", "peek"))  # methods that return one of the things inside
kGivesAll = frozenset(("values", "items", "copy", "most_common"))  # that return all of them
kFollowed = 200  # instructions

# How many places an instruction takes off the stack, where that is not what dis.stack_effect says by itself; None: as many as its argument.
kTaken = {"LOAD_ATTR": 1, "LOAD_METHOD": 1, "COMPARE_OP": 2, "IS_OP": 2, "CONTAINS_OP": 2, "BINARY_SLICE": 3, "STORE_SLICE": 4, "STORE_SUBSCR": 3, "STORE_ATTR": 2, "GET_ITER": 1, "UNPACK_SEQUENCE": 1,
          "UNPACK_EX": 1, "YIELD_VALUE": 1, "TO_BOOL": 1, "FORMAT_SIMPLE": 1, "CALL_INTRINSIC_1": 1, "CALL_INTRINSIC_2": 2, "LIST_TO_TUPLE": 1, "SET_FUNCTION_ATTRIBUTE": 2, "GET_AWAITABLE": 1, "SEND": 1,
          "BUILD_TUPLE": None, "BUILD_LIST": None, "BUILD_SET": None, "BUILD_STRING": None, "BUILD_SLICE": None, "BEFORE_WITH": 1, "STORE_FAST_LOAD_FAST": 1}
kTakenMore = {"CALL": 2, "CALL_KW": 3, "CALL_FUNCTION": 1, "CALL_FUNCTION_KW": 2, "CALL_METHOD": 2, "BUILD_CONST_KEY_MAP": 1}  # these, besides as many as the argument


class Use:
    """how: method (one of it is called or taken, `name`), item (something is stored in it), aug, delete, alias (`name`: a tuple of names), attribute (`name`: it becomes an attribute of
    another object), pass (to a call: `place` of the argument, None: not known), None. `place` of a method: whether it is called there. at: the instruction that does it. path: () of the thing itself, else the keys that lead to the
    one inside it, None for those that are not written out; key: under which an item is stored, likewise."""

    __slots__ = ("how", "name", "at", "path", "place", "key")

    def __init__(self, how, name, at, path=(), place=None, key=None):
        self.how, self.name, self.at, self.path, self.place, self.key = how, name, at, path, place, key


class Reader:
    def __init__(self, code):
        self.code = code
        self.parts = list(dis.get_instructions(code))
        self.at_offset = {part.offset: index for index, part in enumerate(self.parts)}
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
                if part.opname in ("LOAD_ATTR", "LOAD_METHOD") and part.argval == name:
                    found.append((at, 1))
            elif part.opname in ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF", "LOAD_FROM_DICT_OR_GLOBALS") or part.opname.startswith("LOAD_FAST"):
                if part.argval == name:
                    found.append((at, 1))
                elif type(part.argval) is tuple and name in part.argval:
                    found.append((at, 1 if part.argval[-1] == name else 2))
            elif part.opname == "STORE_FAST_LOAD_FAST" and type(part.argval) is tuple and part.argval[-1] == name:
                found.append((at, 1))
        return found

    def stores(self, name, attribute):
        return [at for at, part in enumerate(self.parts)
                if (part.opname == "STORE_ATTR" and part.argval == name if attribute else
                    part.opname.startswith("STORE_") and part.opname != "STORE_ATTR" and (part.argval == name or (type(part.argval) is tuple and part.opname.startswith("STORE_FAST") and
                                                                                          name in (part.argval if "LOAD" not in part.opname else part.argval[:1]))))]

    def stores_constant(self, at):
        """Whether an attribute gets what is written out there: None, most often."""
        return at > 1 and self.parts[at - 2].opname in ("LOAD_CONST", "LOAD_SMALL_INT")

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

    def called_before(self, at):
        """Names that the call there may be of or with: those loaded before it on its line."""
        return {self.parts[i].argval for i in range(max(0, at - 24), at) if self.lines[i] == self.lines[at] and self.parts[i].opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_METHOD", "LOAD_ATTR", "LOAD_DEREF")
                and type(self.parts[i].argval) is str}

    def callee(self, at):
        """The name of what the call there calls: what put it on the stack is sought backwards. None: not found."""
        call = self.parts[at]
        if call.opname == "CALL_FUNCTION_EX":
            return None
        place = call.arg + (2 if call.opname in ("CALL_KW", "CALL_FUNCTION_KW") else 1)
        for now in range(at - 1, max(-1, at - kFollowed), -1):
            part = self.parts[now]
            if part.opname.startswith(("JUMP", "POP_JUMP", "FOR_ITER", "RETURN", "SEND", "YIELD")):
                return None
            if part.opname in ("COPY", "SWAP", "DUP_TOP", "DUP_TOP_TWO", "ROT_TWO", "ROT_THREE", "ROT_FOUR"):
                return None
            try:
                taken, effect = _costs(part)
            except ValueError:
                return None
            if part.opname == "PUSH_NULL" and place == 1:  # 3.13: it lies above what is called
                continue
            if place <= effect + taken:
                name = part.argval if part.opname.startswith("LOAD_") and part.opname != "LOAD_CONST" else None
                if type(name) is tuple:
                    name = name[len(name) - place] if place <= len(name) else None
                return name if type(name) is str else None
            place -= effect
        return None

    def use(self, at, depth):
        """What becomes of the value that lies so deep on the stack after an instruction."""
        held = {depth: ("whole", ())}  # place on the stack -> (what lies there: it, a method that gives something inside, an iterator; the way to it)
        now = at + 1
        for _ in range(kFollowed):
            if now >= len(self.parts) or not held:
                break
            part = self.parts[now]
            name = part.opname
            if name.startswith(("RETURN", "RAISE", "RERAISE")) or name in ("JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"):
                break
            if name in ("JUMP_FORWARD", "JUMP_ABSOLUTE"):
                after = self.at_offset.get(part.argval, -1)
                if after <= now:
                    break
                now = after
                continue
            if name == "FOR_ITER" and held.get(1, ("",))[0] != "iterator":  # past a loop that is none over it, as in a comprehension
                after = self.at_offset.get(part.argval, -1)
                if after <= now:
                    break
                effect = dis.stack_effect(part.opcode, part.arg, jump=True)
                held = {place + effect: kind for place, kind in held.items() if place + effect > 0}
                now = after
                continue
            moved = _moved(part, held)
            if moved is not None:
                held = moved
                now += 1
                continue
            try:
                taken, effect = _costs(part)
            except ValueError:
                break
            used = {place: kind for place, kind in held.items() if place <= taken}
            held = {place + effect: kind for place, kind in held.items() if place > taken}
            if name == "FOR_ITER":
                held[1] = ("whole", held.get(2, ("", ()))[1] + (None,))
            elif used:
                found = self._used(part, used, held, effect + taken, now)
                if found is not None:
                    return found
            now += 1
        return Use(None, None, min(now, len(self.parts) - 1))

    def _used(self, part, used, held, made, now):
        """An instruction takes it: a Use, or None when it is to be followed further; what is made of it is put into `held`."""
        name, whole = part.opname, {place: path for place, (kind, path) in used.items() if kind == "whole"}
        if name in ("LOAD_ATTR", "LOAD_METHOD"):
            if 1 not in whole:
                return Use(None, None, now)
            if part.argval not in kGives | kGivesAll:
                return Use("method", part.argval, now, whole[1], name == "LOAD_METHOD" or "NULL" in part.argrepr)
            held[1] = ("gives" if part.argval in kGives else "gives all", whole[1])
        elif name == "BINARY_SUBSCR" or (name == "BINARY_OP" and part.argrepr == "[]"):
            if 2 in whole:
                held[1] = ("whole", whole[2] + (self._constant(now - 1),))
        elif name in ("STORE_SUBSCR", "STORE_SLICE"):
            place = 2 if name == "STORE_SUBSCR" else 3
            if place in whole:
                return Use("item", None, now, whole[place], key=self._constant(now - 1) if place == 2 else None)
        elif name == "DELETE_SUBSCR":
            if 2 in whole:
                return Use("delete", None, now, whole[2])
        elif name.startswith("INPLACE_") or (name == "BINARY_OP" and part.argrepr.endswith("=")):
            if 2 in whole:
                return Use("aug", None, now, whole[2])
        elif name == "STORE_ATTR":
            if 2 in whole:
                return Use("attribute", part.argval, now, whole[2])
        elif name.startswith("STORE_"):
            names = part.argval if type(part.argval) is tuple else (part.argval,)
            if name == "STORE_FAST_LOAD_FAST":
                names = names[:1]
            places = [place for place, each in enumerate(names, 1) if place in whole and type(each) is str]
            if places:
                aliases = tuple(names[place - 1] for place in places)
                if any(kind == "whole" for kind, _ in held.values()):  # the next of several that one thing is taken apart into
                    aliases += self._next_store(now)
                return Use("alias", aliases, now, whole[places[0]])
        elif name == "GET_ITER":
            held[1] = ("iterator", next(iter(used.values()))[1])
        elif name == "UNPACK_SEQUENCE":
            for place in range(1, made + 1):
                held[place] = ("whole", next(iter(used.values()))[1])
        elif "CALL" in name and "INTRINSIC" not in name:
            gives = next(((kind, path) for kind, path in used.values() if kind.startswith("gives")), None)
            if gives is not None:
                held[1] = ("whole", gives[1] + ((None,) if gives[0] == "gives" else ()))
            elif whole:
                named = any(before.opname == "KW_NAMES" for before in self.parts[max(0, now - 2):now])
                return Use("pass", None, now, whole[max(whole)], None if named else _argument(part, max(whole)))
        return None

    def compared(self, at):
        """(how, with what) the thing that the instruction there leaves on the stack is compared: how is "<", ">=", ...; with what is a number, or ("global", name), ("attribute", name).
        None: it is not, or with something else."""
        following = self.parts[at + 1:at + 4]
        until = next((index for index, part in enumerate(following) if part.opname == "COMPARE_OP"), 0)
        loads = following[:until]
        if not loads or not all(part.opname.startswith("LOAD_") for part in loads):
            return None
        last, how = loads[-1], following[until].argrepr
        if last.opname in ("LOAD_CONST", "LOAD_SMALL_INT") and len(loads) == 1 and type(last.argval) is int:
            return how, last.argval
        if last.opname in ("LOAD_GLOBAL", "LOAD_NAME") and len(loads) == 1:
            return how, ("global", last.argval)
        return (how, ("attribute", last.argval)) if last.opname == "LOAD_ATTR" and len(loads) == 2 else None

    def kept_of_slice(self, at):
        """Of `del kept[:-5]`, whose last instruction this is: 5; None: it is another one."""
        slice_, stop = self.parts[at - 1], self.parts[at - 2]
        if type(slice_.argval) is slice:
            found = slice_.argval.stop if slice_.argval.start is None else None
        else:
            found = stop.argval if slice_.opname == "BUILD_SLICE" and slice_.arg == 2 and stop.opname == "LOAD_CONST" else None
        return -found if type(found) is int and found < 0 else None

    def _constant(self, at):
        """What the instruction there loads, if it is written out: a key. A slice, which is written out since 3.14, is none."""
        while at > 0 and self.parts[at].opname in ("COPY", "DUP_TOP_TWO"):
            at -= 1
        key = self.parts[at].argval if self.parts[at].opname in ("LOAD_CONST", "LOAD_SMALL_INT") else None
        return None if type(key) is slice else key

    def _next_store(self, now):
        part = self.parts[now + 1] if now + 1 < len(self.parts) else None
        return (part.argval,) if part is not None and part.opname.startswith("STORE_") and type(part.argval) is str and part.opname != "STORE_ATTR" else ()


def _argument(call, place):
    """Which argument of a call lies so deep; None: not known."""
    if call.opname in ("CALL", "CALL_FUNCTION", "CALL_METHOD") and place <= call.arg:
        return call.arg - place
    return None


def _moved(part, held):
    """The places after an instruction that only moves or copies them; None: it is another one."""
    name, count = part.opname, part.arg
    if name == "COPY":
        return {**{place + 1: kind for place, kind in held.items()}, **({1: held[count]} if count in held else {})}
    if name == "SWAP":
        return {count if place == 1 else 1 if place == count else place: kind for place, kind in held.items()}
    if name == "DUP_TOP":
        return {**{place + 1: kind for place, kind in held.items()}, **({1: held[1]} if 1 in held else {})}
    if name == "DUP_TOP_TWO":
        return {**{place + 2: kind for place, kind in held.items()}, **{place: held[place] for place in (1, 2) if place in held}}
    if name in ("ROT_TWO", "ROT_THREE", "ROT_FOUR"):
        last = {"ROT_TWO": 2, "ROT_THREE": 3, "ROT_FOUR": 4}[name]
        return {last if place == 1 else place - 1 if place <= last else place: kind for place, kind in held.items()}
    return None


def _costs(part):
    """How many places an instruction takes off the stack, and how much longer that is afterwards."""
    effect = dis.stack_effect(part.opcode, part.arg if part.opcode >= dis.HAVE_ARGUMENT else None, jump=False)
    taken = _taken(part, effect)
    return taken, 0 if part.opname == "PRECALL" else 1 - taken if part.opname in kTakenMore else effect  # 3.11 says of half of a call what all of it takes


def _taken(part, effect):
    name = part.opname
    if name == "PRECALL":
        return 0
    if name in kTakenMore:
        return part.arg + kTakenMore[name]
    if name == "BUILD_MAP":
        return 2 * part.arg
    if name == "CALL_FUNCTION_EX" or name == "MAKE_FUNCTION":
        return 1 - effect
    if name.startswith(("BINARY_", "INPLACE_")) and name not in kTaken:
        return 2
    if name.startswith("UNARY_"):
        return 1
    if name in kTaken:
        return part.arg if kTaken[name] is None else kTaken[name]
    return max(0, -effect)
