"""The steps of a chain, from a holder to its root: what each is called, and of which kind it is, so that a cause can be a pattern of kinds and types. Nothing of
the program is run."""

import functools
import sys
import types
from collections import deque

from . import frames, link
from .referents import referents
from .roots import _lru as kCached

kLocal = next((part for part in __import__("threading").local.__mro__ if part.__module__ == "_thread"), None)
kRunning = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
kFrameOf = ("gi_frame", "cr_frame", "ag_frame")
kSequences = (list, tuple, set, frozenset, deque)
kCounted = (list, dict, set, deque)  # whose lengths are asked of a container that they lie in

# Types that a cause asks for, by where they or their bases are defined: the beginning of the module's name, the name, what it is called in the notes.
kPublic = (("keras", "Callback", "keras.Callback"), ("tensorflow.python.keras", "Callback", "keras.Callback"), ("keras", "Layer", "keras.Layer"),
           ("torch.nn.modules.module", "Module", "torch.nn.Module"), ("torch.autograd", "Function", "torch.autograd.Function"), ("torch", "Tensor", "torch.Tensor"),
           ("lightning", "Callback", "lightning.Callback"), ("pytorch_lightning", "Callback", "lightning.Callback"), ("transformers", "TrainerCallback", "transformers.TrainerCallback"),
           ("logging", "Handler", "logging.Handler"), ("logging", "Logger", "logging.Logger"), ("builtins", "BaseException", "BaseException"), ("threading", "Thread", "threading.Thread"),
           ("asyncio", "Future", "asyncio.Future"), ("_asyncio", "Future", "asyncio.Future"), ("_asyncio", "Task", "asyncio.Task"), ("asyncio", "Task", "asyncio.Task"),
           ("concurrent.futures", "Future", "concurrent.futures.Future"), ("queue", "Queue", "queue.Queue"), ("collections", "OrderedDict", "collections.OrderedDict"))


class Step:
    """How one object holds another. kind: global, local, frame (a local of a generator or coroutine), attribute, class_attribute, thread_local, item, key, closure, default,
    cache (functools), traceback, exception, method, function, globals, weak_callback, argument (functools.partial), autograd, registry (of a module written in C), module,
    modules, unreached, held (a type that does not say how)."""

    __slots__ = ("kind", "name", "words", "of", "where", "key")

    def __init__(self, kind, name, words, of=None, where=None, key=None):
        self.kind, self.name, self.words = kind, name, words
        self.key = key  # of an item; never told
        self.of = of  # the type of what holds
        self.where = where  # a code object, function, module's name or class: where the name counts

    def said(self):
        row = {"kind": self.kind}
        if self.name is not None:
            row["name"] = self.name
        if self.of is not None:
            row["of"] = full_name(self.of)
            public = bases(self.of)
            if public:
                row["is"] = public
        return row


def registered(module):
    """Of a module written in C, which holds it in a table of its own."""
    return Step("registry", module, "%sregistered with %s" % ("functions " if module == "atexit" else "", module), types.ModuleType, module)


def full_name(kind):
    module = type.__dict__["__module__"].__get__(kind) if isinstance(kind, type) else None
    return "%s.%s" % (module if type(module) is str else "?", type.__dict__["__qualname__"].__get__(kind))


def bases(kind):
    """Which of the types that causes ask for it is or derives from."""
    found = []
    for base in type.__dict__["__mro__"].__get__(kind):
        module = base.__dict__.get("__module__")
        module = module if type(module) is str else "builtins" if base in (BaseException,) else ""
        for begin, name, word in kPublic:
            if base.__name__ == name and (module == begin or module.startswith(begin + ".")) and word not in found:
                found.append(word)
    return found


def below(parent, wanted, links=()):
    """What `parent` refers to directly and has this address; None: no more."""
    if type(parent) in kSequences:
        return next((value for value in list(parent) if id(value) == wanted), None)
    if type(parent) is types.CellType and wanted is None:
        return next(iter(referents(parent)), None)
    found = next((value for value in referents(parent) if id(value) == wanted), None)
    if found is None and type(parent).__module__ == "numpy" and type(parent).__name__ == "ndarray":
        base = parent.base
        found = base if id(base) == wanted else None
        if found is None and parent.dtype.hasobject and parent.size <= 100000:
            found = next((value for value in parent.ravel(order="K").tolist() if id(value) == wanted), None)
    if found is None:
        found = next((child for above, child in links if above is parent and id(child) == wanted), None)
    return found


def place(parent, child):
    """The name under which `parent` holds `child`, by which what takes its place later can be found (at()); None: it has none."""
    if type(parent) is dict:
        return next((key for key, value in dict.items(parent) if value is child and type(key) in (str, int)), None)
    if type(parent) is types.CellType:
        return "cell_contents"
    if type(parent) in kSequences or type(parent) in (types.FunctionType, types.MethodType, types.ModuleType) or isinstance(parent, type):
        return None
    return attribute(parent, child)


def at(parent, name):
    """What `parent` holds under a name now, without running anything of its class; None: nothing."""
    if type(parent) is dict:
        return parent.get(name)
    if type(parent) is types.CellType:
        return below(parent, None)
    if type(name) is not str or any(name in vars(kind) and type(vars(kind)[name]) is not types.MemberDescriptorType for kind in type(parent).__mro__):
        return None
    try:
        return object.__getattribute__(parent, name)
    except Exception:
        return None


def edge(parent, child, above, further):
    """The Step from parent to child; None for one that a person does not see. above holds parent, further holds that."""
    kind = type(parent)
    if kind is dict:
        return _edge_of_dict(parent, child, above, further)
    if kind in kSequences:
        if type(above) is types.FunctionType:
            at = next((index for index, value in enumerate(parent) if value is child), None)
            code = above.__code__
            if above.__defaults__ is parent and at is not None:
                names = code.co_varnames[: code.co_argcount]
                name = names[len(names) - len(parent) + at]
                return Step("default", name, "default of argument %s of %s" % (name, above.__qualname__), kind, above)
            if above.__closure__ is parent:
                return None
        return Step("item", None, "an item of %s" % kind.__name__, kind)
    if kind is types.CellType:
        if type(further) is types.FunctionType and further.__closure__ is above:
            at = next((index for index, value in enumerate(above) if value is parent), 0)
            name = further.__code__.co_freevars[at]
            return Step("closure", name, "variable %s in the closure of %s" % (name, further.__qualname__), types.FunctionType, further)
        return None
    if kind is types.FunctionType:
        if any(part is child for part in (parent.__defaults__, parent.__closure__, parent.__dict__, parent.__kwdefaults__)):
            return None
        if parent.__globals__ is child:
            return Step("globals", parent.__qualname__, "the globals of function %s" % parent.__qualname__, kind, parent)
        return Step("function", parent.__qualname__, "function %s" % parent.__qualname__, kind, parent)
    if kind is types.MethodType:
        name = getattr(parent.__func__, "__qualname__", None)
        return Step("method", name, "method %s" % name if name else "a method", kind)
    if kind in kRunning or kind is types.FrameType:
        return _edge_of_frame(parent, child, above)
    if kind is types.TracebackType:
        return Step("traceback", None, "a traceback", kind) if type(child) is types.FrameType else None
    if kind is kCached:
        name = getattr(getattr(parent, "__wrapped__", None), "__qualname__", None)
        return Step("cache", name, "the cache of %s" % name if name else "a cache of functools", kind, getattr(parent, "__wrapped__", None))
    if kind is functools.partial:
        return Step("argument", getattr(parent.func, "__qualname__", None), "an argument of functools.partial", kind)
    if issubclass(kind, __import__("weakref").ReferenceType):
        return Step("weak_callback", None, "the callback of a weak reference", kind)
    if kind is types.ModuleType:
        return registered(parent.__name__) if child is not vars(parent) else None
    if issubclass(kind, types.ModuleType) or (issubclass(kind, type) and type(child) is dict):
        return None
    if own(parent) is child or (kLocal is not None and issubclass(kind, kLocal) and type(child) is dict):
        return None
    if issubclass(kind, BaseException) and type(child) is types.TracebackType:
        return Step("exception", "__traceback__", "the traceback of %s" % kind.__name__, kind)
    if _is_node(kind):
        return Step("autograd", kind.__name__, "the graph node %s" % kind.__name__, kind)
    name = attribute(parent, child)
    if name is None and _is_node(type(child)):
        name = "grad_fn"
    return Step("attribute", name, "attribute %s of %s" % (name, kind.__name__), kind, kind) if name else Step("held", None, "held by %s" % kind.__name__, kind)


def _is_node(kind):
    """A node of torch's graph of gradients."""
    return kind.__name__.rstrip("0123456789").endswith("Backward") and kind.__module__ in ("builtins", "torch.autograd.function") or kind.__name__ == "AccumulateGrad"


def _edge_of_dict(parent, child, above, further):
    key = next((key for key, value in dict.items(parent) if value is child), None)
    name = parent.get("__name__") if "__spec__" in parent or "__builtins__" in parent else None
    if type(name) is str and type(key) is str:
        return Step("global", key, "global %s of %s" % (key, name), types.ModuleType, name)
    if parent is sys.modules:
        return None
    if type(key) is str and above is not None:
        if own(above) is parent:
            return Step("attribute", key, "attribute %s of %s" % (key, type(above).__name__), type(above), type(above))
        if issubclass(type(above), type):
            return Step("class_attribute", key, "class attribute %s of %s" % (key, above.__name__), above, above)
        if type(above) is types.FunctionType and above.__kwdefaults__ is parent:
            return Step("default", key, "default of argument %s of %s" % (key, above.__qualname__), types.FunctionType, above)
        if type(above) is types.FunctionType and above.__dict__ is parent:
            return Step("attribute", key, "attribute %s of function %s" % (key, above.__qualname__), types.FunctionType, types.FunctionType)
        if type(above) is dict and kLocal is not None and issubclass(type(further), kLocal):
            return Step("thread_local", key, "attribute %s of threading.local" % key, type(further), type(further))
    if kLocal is not None and issubclass(type(above), kLocal):
        return None  # from a thread to its values
    if key is None:
        return Step("key", None, "a key of dict", dict)
    return Step("item", None, "item %s of dict" % frames.told_key(key), dict, key=key if type(key) in (str, int) else None)


def _edge_of_frame(parent, child, above):
    """A variable of a function that waits, or that a traceback keeps."""
    from . import variables

    if type(child) is types.FrameType:
        return None
    frame = parent if type(parent) is types.FrameType else next((found for found in (getattr(parent, name, None) for name in kFrameOf) if found is not None), None)
    if frame is None:
        return Step("held", None, "held by %s" % type(parent).__name__, type(parent))
    name = next((name for name, value in variables.items(frame) if value is child), None)
    function = frames.function_name(frame)
    if name is None and type(child) is types.CellType:
        return None
    kept = " in a traceback" if type(above) is types.TracebackType else ""
    return Step("frame", name, "local %s of %s%s" % (name, function, kept) if name else "a value of %s" % function, type(parent), frame.f_code)


def own(thing):
    """The dictionary of an object's attributes, without running anything of its class; None: it has none."""
    if not type(thing).__dictoffset__:
        return None
    try:
        found = object.__getattribute__(thing, "__dict__")
    except Exception:
        link.pass_on()
        return None
    return found if type(found) is dict else None


def attribute(parent, child):
    """The name of an attribute that is this very object."""
    for name, value in dict.items(own(parent) or {}):
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


def attributes_of_own_type(thing):
    """Names of its attributes that are objects of the same type."""
    kind = type(thing)
    found = [name for name, value in dict.items(own(thing) or {}) if type(value) is kind and type(name) is str]
    for base in kind.__mro__:
        for name, member in list(vars(base).items()):
            if type(member) is types.MemberDescriptorType:
                try:
                    if type(member.__get__(thing)) is kind:
                        found.append(name)
                except AttributeError:  # not set
                    pass
    return found


def root(thing, kind):
    if thing is sys.modules:
        return Step("modules", None, "modules")
    if type(thing) is dict and type(thing.get("__name__")) is str:
        return Step("module", thing["__name__"], "module %s" % thing["__name__"], types.ModuleType)
    if isinstance(thing, types.ModuleType):
        return Step("module", thing.__name__, "module %s" % thing.__name__, types.ModuleType)
    return Step("unreached", None, kind, type(thing) if thing is not None else None)


def size(thing):
    """(how many items it has, how many it takes); None: it does not say."""
    kind = type(thing)
    for base in (list, dict, set, frozenset, tuple, bytearray, deque):
        if kind is base or (issubclass(kind, base) and kind.__len__ is base.__len__):
            return base.__len__(thing), thing.maxlen if issubclass(kind, deque) else None
    if kind.__module__ == "array" and kind.__name__ == "array":
        return len(thing), None
    if kind is kCached:
        info = thing.cache_info()
        return info.currsize, info.maxsize
    if kind.__module__ == "numpy" and kind.__name__ == "ndarray":
        return thing.size if thing.dtype.hasobject else thing.nbytes, None  # one that holds nothing grows by bytes, like a text
    if kind is types.ModuleType and thing.__name__ == "atexit":
        return thing._ncallbacks(), None
    return None, None


kInner = 4000  # items that are gone through


def inner(thing):
    """How much lies in the items of a container: one for each that is not None, and their own lengths where they are containers; None: not known. A dictionary of lists gets no longer when
    one of the lists does, and a list that was made with all its places gets no longer at all."""
    kind = type(thing)
    if issubclass(kind, dict) and kind.values is dict.values:
        values = dict.values(thing)
    elif kind in (list, tuple, deque):
        values = thing
    elif kind.__module__ == "numpy" and kind.__name__ == "ndarray" and thing.dtype.hasobject and thing.size <= kInner:
        values = thing.ravel(order="K").tolist()
    else:
        return None
    if len(values) > kInner:
        return None
    return sum((value is not None) + (len(value) if type(value) in kCounted else 0) for value in list(values))


def block_bytes(thing):
    """How many bytes a text, an array or a buffer has; None: it does not say."""
    kind = type(thing)
    if kind in (bytes, str, bytearray) or (kind.__module__, kind.__name__) in (("_io", "BytesIO"), ("_io", "StringIO"), ("array", "array"), ("mmap", "mmap")):
        return kind.__sizeof__(thing)
    if kind.__module__ == "numpy" and kind.__name__ == "ndarray":
        return thing.nbytes
    return None


def bound(objects):
    """How many items the holder takes, as it or the library's object around it says: deque(maxlen=), lru_cache(maxsize=), queue.Queue(maxsize=)."""
    limit = size(objects[0])[1] if objects and objects[0] is not None else None
    for thing in objects[1:4]:
        if limit is not None or thing is None:
            break
        if type(thing) is kCached:
            limit = thing.cache_info().maxsize
        elif bases(type(thing)) == ["queue.Queue"] or full_name(type(thing)) == "asyncio.queues.Queue":
            most = (own(thing) or {}).get("maxsize", (own(thing) or {}).get("_maxsize"))
            limit = most if type(most) is int and most > 0 else None
    return limit
