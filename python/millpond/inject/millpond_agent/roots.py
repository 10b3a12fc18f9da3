"""Walks what the user's code holds: from globals of his modules, locals of running functions and his objects, through attributes, items,
closures, defaults and generators, breadth first, within a budget. Each thing is met by one way, and the way has names: so a growing
list is found together with who holds it. Nothing of the program is run, and nothing is kept alive."""

import functools
import sys
import time
import types
from collections import Counter, deque
from itertools import islice

from . import frames, link, sizes, threads, variables
from .referents import referents

kObjects = 30000
kItems = 32  # of a container with more only the first few are entered
kFirst = 8
kDepth = 12
kManyAttributes = 12  # of one object
kOwnMost = 1000  # of a type with more objects only those that are met
_cells = types.CellType
_lru = type(functools.lru_cache(maxsize=1)(len))
_plain = {int, float, bool, type(None), complex, range, type(...), types.ModuleType, types.BuiltinFunctionType, types.CodeType,
          property, staticmethod, classmethod, types.FrameType}


class Way:
    """One step: how a thing is reached from its parent. kind: attribute, item, local, global, closure, default, class, object, chain, or inside: what
    has no name of its own (the attributes of an object taken together, the list in a queue) and is added to by its parent's."""

    __slots__ = ("parent", "kind", "name", "owner", "file", "function", "library", "owners", "of")

    def __init__(self, parent, kind, name, owner="", file=None, function=None, library=0, owners=(), of=None):
        self.parent, self.kind, self.name, self.owner = parent, kind, name, owner
        self.file, self.function = file, function
        self.library = library  # steps through objects of libraries so far
        self.owners = owners  # names of the class that has the attribute, and of its bases
        self.of = of  # the full name of that class

    def key(self, any_item=False):
        """Tells this way from others, from look to look; with any_item one item of a container is as good as another, unless its key stands in the source: such an item is a variable."""
        parts = []
        way = self
        while way is not None:
            name = "*" if any_item and way.kind == "item" and not (type(way.name) is str and frames.told_key(way.name) != "...") else way.name
            parts.append("%s:%s.%s" % (way.kind, way.owner, name))
            way = way.parent
        return "/".join(reversed(parts))

    def named(self):
        """The nearest step with a name in the source."""
        way = self
        while way is not None and way.kind in ("item", "chain", "inside"):
            way = way.parent
        return way

    def words(self):
        kind, name, owner = self.kind, self.name, self.owner
        if kind == "attribute":
            return "attribute %s of %s" % (name, owner)
        if kind == "class":
            return "class attribute %s of %s" % (name, owner)
        if kind == "local":
            return "local %s of %s" % (name, owner)
        if kind == "global":
            return "global %s of %s" % (name, owner)
        if kind == "closure":
            return "variable %s in the closure of %s" % (name, owner)
        if kind == "default":
            return "default of argument %s of %s" % (name, owner)
        if kind == "item":
            return "item %s" % frames.told_key(name)
        if kind == "object":
            return "an object of %s" % owner
        if kind == "inside":
            return "%s %s" % (name, owner)
        return "%s %s" % (kind, name)


class Found:
    """One thing that has a size which may grow."""

    __slots__ = ("thing", "way", "kind", "size")

    def __init__(self, thing, way, kind, size):
        self.thing, self.way, self.kind, self.size = thing, way, kind, size


_user_modules = {"builtins": False}  # by name; not by type: that would keep the user's types alive


def is_user_type(kind):
    name = sizes.module_of(kind)
    known = _user_modules.get(name)
    if known is None:
        module = sys.modules.get(name)
        known = module is not None and frames.user_module(module)
        if len(_user_modules) < 20000:
            _user_modules[name] = known
    return known


def type_name(thing):
    return type(thing).__name__


class Walk:
    def __init__(self, seconds):
        self.found = []
        self.way_of = {}  # id -> Way, for all that was met
        self.queue = deque()
        self.owners = {}
        self.full = {}  # type of a library's object -> its name with its module
        self.lengths = {}  # Way -> length of the container there
        self.met = Counter()  # the user's types: how many objects
        self.end = time.thread_time() + seconds
        self.complete = True

    def run(self, objects=None, types=None):
        me = threads.get_ident()
        try:
            self._frames(me)
            for module in frames.user_modules():
                self._module(module)
            self._drain()
            if objects is not None:
                kinds = {kind for kind, count in types.items() if count <= kOwnMost and is_user_type(kind) and count > self.met[kind]}
                if kinds:  # the user's objects that only a library holds
                    for thing in [thing for thing in objects if type(thing) in kinds]:
                        self.meet(thing, Way(None, "object", "", type_name(thing)))
                    self._drain()
        finally:
            self.queue.clear()
        return self.found

    # Roots ------------------------------------------------------------------------------------------------------------

    def _module(self, module):
        name = getattr(module, "__name__", "?")
        file = getattr(module, "__file__", None)
        for key, value in list(vars(module).items()):
            if type(key) is str and not key.startswith("__"):
                self.meet(value, Way(None, "global", key, name, file, "<module>"))

    def _frames(self, me):
        for thread, frame in sys._current_frames().items():
            if thread == me:
                frame = sys._getframe(2)
            depth = 0
            while frame is not None and depth < 200:
                self._locals(frame)
                frame = frame.f_back
                depth += 1

    def _locals(self, frame):
        code = frame.f_code
        if not code.co_flags & 1:
            return  # a module's or a class's body: its locals are a namespace of its own
        user = frames.is_user_frame(frame)
        file = code.co_filename
        if "millpond_agent" in file:
            return
        name = frames.function_name(frame) if user else code.co_name
        for key, value in variables.items(frame):
            self.meet(value, Way(None, "local", key, name, file, name, 0 if user else 2))

    # Walking ----------------------------------------------------------------------------------------------------------

    def meet(self, thing, way):
        kind = type(thing)
        if kind in _plain or isinstance(thing, types.ModuleType):
            return
        identity = id(thing)
        if identity in self.way_of:
            return
        if len(self.way_of) >= kObjects:
            self.complete = False
            return
        self.way_of[identity] = way
        if is_user_type(kind):
            self.met[kind] += 1
        self.queue.append((thing, way))

    def share_entered(self, way):
        """Of the items of the nearest container on this way, which part was entered."""
        while way is not None and way.kind != "item":
            way = way.parent
        length = self.lengths.get(way.parent, 0) if way is not None else 0
        return 1.0 if length <= kItems else kFirst / length

    def _drain(self):
        queue = self.queue
        count = 0
        while queue:
            count += 1
            if not count & 127 and time.thread_time() > self.end:
                self.complete = False
                return
            thing, way = queue.popleft()
            try:
                self._enter(thing, way)
            except Exception:
                link.oops()

    def _measure(self, thing, way, kind, size):
        if kind == "container":
            self.lengths[way] = size
        self.found.append(Found(thing, way, kind, size))

    def _enter(self, thing, way):
        kind = type(thing)
        deep = 0
        step = way
        while step is not None:
            deep += 1
            step = step.parent
        library = way.library
        if kind is list or kind is tuple or issubclass(kind, (list, tuple)):
            base = list if issubclass(kind, list) else tuple
            size = base.__len__(thing)
            if base is list:
                self._measure(thing, way, "container", size)
            elif size <= 4:
                self._chain_of_items(thing, way)
            if deep < kDepth:
                for index in range(min(size, kItems if size <= kItems else kFirst)):
                    self.meet(base.__getitem__(thing, index), Way(way, "item", index, library=library))
        elif issubclass(kind, dict):
            size = dict.__len__(thing)
            self._measure(thing, way, "container", size)
            if deep < kDepth:
                pairs = islice(dict.items(thing), kItems if size <= kItems else kFirst)
                for key, value in list(pairs):
                    label = key if type(key) is str else str(key) if type(key) is int else type(key).__name__
                    self.meet(value, Way(way, "item", label, library=library))
        elif issubclass(kind, (set, frozenset)):
            base = set if issubclass(kind, set) else frozenset
            self._measure(thing, way, "container", base.__len__(thing))
            for value in list(islice(base.__iter__(thing), kFirst)):
                self.meet(value, Way(way, "item", "", library=library))
        elif issubclass(kind, deque):
            size = deque.__len__(thing)
            self._measure(thing, way, "container", size)
            for index in range(min(size, kItems if size <= kItems else kFirst)):
                self.meet(deque.__getitem__(thing, index), Way(way, "item", index, library=library))
        elif kind is types.FunctionType:
            self._function(thing, way)
        elif kind is types.MethodType:
            self.meet(thing.__self__, Way(way, "attribute", "__self__", "method", library=library))
            self.meet(thing.__func__, Way(way, "attribute", "__func__", "method", library=library))
        elif kind is _lru:
            self._measure(thing, way, "lru_cache", thing.cache_info().currsize)
            self.meet(getattr(thing, "__wrapped__", None), Way(way, "attribute", "__wrapped__", "lru_cache", library=library))
        elif kind is functools.partial:
            for index, value in enumerate(thing.args):
                self.meet(value, Way(way, "item", index, library=library))
            for key, value in thing.keywords.items():
                self.meet(value, Way(way, "item", key, library=library))
            self.meet(thing.func, Way(way, "attribute", "func", "partial", library=library))
        elif kind is types.GeneratorType or kind is types.CoroutineType:
            frame = thing.gi_frame if kind is types.GeneratorType else thing.cr_frame
            if frame is not None and frames.is_user_frame(frame):
                self._locals(frame)
        elif isinstance(thing, type):
            if is_user_type(thing):
                for key, value in list(vars(thing).items()):
                    inner = value.__func__ if type(value) in (staticmethod, classmethod) else value
                    if type(value) is property:
                        inner = value.fget
                    if not key.startswith("__") or type(inner) is types.FunctionType:
                        self.meet(inner, Way(way, "class", key, thing.__name__, _file_of(thing)))
        else:
            self._object(thing, way, kind, deep)

    def _function(self, thing, way):
        code = thing.__code__
        if not frames.is_user_file(code.co_filename) and not way.library < 1:
            return
        name = getattr(thing, "__qualname__", code.co_name).replace(".<locals>", "")
        file = code.co_filename
        if thing.__closure__:
            for key, cell in zip(code.co_freevars, thing.__closure__):
                try:
                    value = cell.cell_contents
                except ValueError:
                    continue
                self.meet(value, Way(way, "closure", key, name, file, name))
        defaults = thing.__defaults__
        if defaults:
            names = code.co_varnames[code.co_argcount - len(defaults):code.co_argcount]
            for key, value in zip(names, defaults):
                self.meet(value, Way(way, "default", key, name, file, name))
        for key, value in (thing.__kwdefaults__ or {}).items():
            self.meet(value, Way(way, "default", key, name, file, name))
        for key, value in list(vars(thing).items()):
            self.meet(value, Way(way, "attribute", key, name, file, None))

    def _object(self, thing, way, kind, deep):
        size = sizes.grows_itself(thing)
        if size is not None:
            if size >= 4096:
                self._measure(thing, way, "array", size)
            if sizes.module_of(kind).startswith("torch") and getattr(thing, "grad_fn", None) is not None:
                self._measure(thing, way, "graph", len(sizes.graph_of(thing)))
            return
        items = sizes.ring_items(thing)
        if items is not None:
            self._measure(thing, way, "container", len(items))
            for index, value in enumerate(items if len(items) <= kItems else items[:kFirst]):
                self.meet(value, Way(way, "item", index, library=way.library))
            return
        user = is_user_type(kind)
        library = 0 if user else way.library + 1
        if library > 3 or deep >= kDepth:
            return
        name = kind.__name__
        file = _file_of(kind) if user else None
        owners = self.owners.get(kind)
        if owners is None:
            owners = self.owners[kind] = tuple(base.__name__ for base in kind.__mro__)
        of = None if user else self.full.setdefault(kind, sizes.full_name(kind))
        try:
            values = object.__getattribute__(thing, "__dict__")
        except (AttributeError, TypeError):
            values = None
        if values is None and not user and library <= 1:
            for part in referents(thing)[:16]:
                if type(part) in (list, dict, set, deque):
                    self.meet(part, Way(way, "inside", "inside of", name, library=library, of=of))
        if type(values) is dict:
            if user and len(values) >= (kManyAttributes if way.kind == "item" else 2):  # one with a name may gain them one by one
                self._measure(values, Way(way, "inside", "attributes of", name, file), "container", len(values))
            for key, value in list(values.items()):
                if user and type(value) is kind:
                    self._chain(thing, way, kind, key)
                self.meet(value, Way(way, "attribute", key, name, file, None, library, owners, of))
        if user:
            for owner in kind.__mro__:
                for key, slot in list(vars(owner).items()):
                    if type(slot) is types.MemberDescriptorType:
                        try:
                            value = slot.__get__(thing, kind)
                        except AttributeError:
                            continue
                        if type(value) is kind:
                            self._chain(thing, way, kind, key)
                        self.meet(value, Way(way, "attribute", key, name, file, None, library, owners))

    def _chain(self, thing, way, kind, key):
        """thing.key.key.key...: how long?"""
        start = thing
        length = 0
        seen = set()
        while type(thing) is kind and id(thing) not in seen and length < 20000:
            seen.add(id(thing))
            length += 1
            try:
                thing = object.__getattribute__(thing, key)
            except AttributeError:
                break
        for identity in seen:
            self.way_of.setdefault(identity, way)
        self._measure(start, Way(way, "chain", key, kind.__name__, _file_of(kind), None, 0, self.owners.get(kind, ())), "chain", length)

    def _chain_of_items(self, thing, way):
        length = 0
        place = next((i for i, part in enumerate(thing) if type(part) is tuple and len(part) == len(thing)), None)
        if place is None:
            return
        seen = []
        start = thing
        while type(thing) is tuple and len(thing) > place and length < 20000:
            seen.append(id(thing))
            length += 1
            thing = thing[place]
        if length > 4:
            for identity in seen:
                self.way_of.setdefault(identity, way)
            self._measure(start, Way(way, "chain", place, "tuple"), "chain", length)


def _file_of(kind):
    module = sys.modules.get(sizes.module_of(kind))
    return getattr(module, "__file__", None)
