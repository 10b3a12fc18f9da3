"""How many bytes a thing holds: arrays and tensors by their own word, everything else by sys.getsizeof as allocators round it up, followed a few steps deep with a
cap on objects and time. Nothing of the program is run: no __len__, __iter__ or __getattr__ of the user's classes."""

import collections
import io
import itertools
import sys
import time
import types

from . import link
from .referents import referents

kObjects = 4000
kSeconds = 0.006
kWhole = 512  # items of a container that are all followed
kSome = 256  # of a longer one, spread evenly: each stands for its neighbours
kRows = (32, 16, 4)  # of lists of lists: so many of the outermost, of each in it, ...
_long = {list, tuple, dict, set, frozenset, collections.deque}  # whose len and iteration are not the user's
_alike = {list, set, frozenset, collections.deque}  # whose items are mostly of one kind; a tuple or a dictionary may be a record
_skip = (type, types.ModuleType, types.BuiltinFunctionType, types.CodeType, types.GetSetDescriptorType, types.MemberDescriptorType,
         types.MethodDescriptorType, types.WrapperDescriptorType)
_plain = {int, float, bool, type(None), complex, range, type(...)}
_numbers = {int, float, complex}


def taken(size):
    """Bytes that allocators take for an object of a size: whole sixteens, of larger ones with a head."""
    return (size + 15 if size <= 512 else size + 23) & -16


kFloat = taken(sys.getsizeof(0.5))
kHeapType, kManagedDictionary = 1 << 9, 1 << 4  # of a type's flags: made by a class statement; attributes of its objects lie in an array until somebody asks for their dictionary


def own_bytes(thing, kind, parts):
    """What an object takes by itself, where sys.getsizeof does not tell all: the array of attributes that an object has in place of a dictionary since 3.11 (in a block of its own; since 3.13 in
    the object's), and the one item more that objects of variable size have when their type was made by a class statement. parts: what it refers to."""
    size = sys.getsizeof(thing, 0)
    flags = kind.__flags__
    if not flags & kHeapType:
        return taken(size)
    size += kind.__itemsize__
    if sys.version_info < (3, 11) or not flags & kManagedDictionary:
        return taken(size)
    places = len(parts)  # one is the type, which stands for the place that is left free for the next attribute
    array = 8 * places + (places + 9 & -8)
    return taken(size + array) if sys.version_info >= (3, 13) else taken(size) + taken(array)


kOwnMost = 128  # bytes of a table for one item, right after it has grown: more is room that was there before


def own_of_item(container):
    """Bytes of the container itself for each of its items: a pointer in a list, a row of a dictionary's table with the room that is left free in it."""
    kind = type(container)
    base = next((base for base in (list, collections.OrderedDict, dict, set, frozenset, collections.deque) if issubclass(kind, base)), None)
    count = base.__len__(container) if base is not None else 0
    return min(max((base.__sizeof__(container) - base.__sizeof__(base())) / count, 8), kOwnMost) if count else 8


def module_of(kind):
    """kind.__module__, which with some types is no text."""
    name = kind.__module__
    return name if type(name) is str else ""


def full_name(kind):
    """Of a type, with its module: a class of the user's may be called like one of Python's."""
    return "%s.%s" % (module_of(kind), kind.__qualname__)


def array_bytes(thing):
    """(bytes, identity of the memory) of an array or tensor of a framework; None for anything else. What lies in the memory of a GPU takes none of the host's: 0 bytes."""
    kind = type(thing)
    name = kind.__name__
    root = module_of(kind).partition(".")[0]
    try:
        if root == "numpy" or name in ("ndarray", "memmap"):
            if not hasattr(kind, "nbytes") or not isinstance(getattr(thing, "nbytes", None), int):
                return None
            base = thing
            while type(getattr(base, "base", None)) is kind:
                base = base.base
            if name == "memmap":
                return 0, id(base)
            return int(base.nbytes), id(base)
        if root == "torch" and hasattr(thing, "element_size") and hasattr(thing, "nelement"):
            try:
                storage = thing.untyped_storage() if hasattr(thing, "untyped_storage") else thing.storage()
                return int(storage.nbytes()) if thing.device.type == "cpu" else 0, storage.data_ptr()
            except Exception:
                link.pass_on()
                return thing.element_size() * thing.nelement(), id(thing)
        if root in ("jaxlib", "jax") and hasattr(kind, "nbytes"):
            return int(thing.nbytes) if all(device.platform == "cpu" for device in thing.devices()) else 0, id(thing)
        if root == "tensorflow" and (name == "EagerTensor" or name.endswith("Variable")):
            elements = thing.shape.num_elements()
            size = thing.dtype.size
            return (elements or 0) * (size if size < 64 and "device:GPU" not in thing.device else 0), id(thing)
        if root == "pandas" and name in ("DataFrame", "Series"):
            return sum(int(getattr(block.values, "nbytes", 0)) for block in thing._mgr.blocks), id(thing)
    except Exception:
        link.pass_on()
        return None
    return None


def keras_variables(thing):
    """Of a Keras model: its variables and its optimizer's, which are what it weighs; None for anything else."""
    module = sys.modules.get("keras.src.models.model")
    if module is None or module.Model not in type(thing).__mro__:
        return None
    try:
        optimizer = getattr(thing, "optimizer", None)
        return [variable._value for variable in list(thing.variables) + list(getattr(optimizer, "variables", ()))]
    except Exception:
        link.pass_on()
        return None


def grows_itself(thing):
    """Bytes of a thing that can grow without being a container: arrays, bytearray, str, BytesIO; None for others."""
    kind = type(thing)
    if kind in _plain:
        return None
    if kind in (bytearray, str, bytes):
        return len(thing) if kind is bytearray else sys.getsizeof(thing)
    if kind is io.BytesIO:
        return -1 if thing.closed else _length(thing)
    if module_of(kind) in ("_io", "array"):
        return sys.getsizeof(thing) if kind.__name__ in ("StringIO", "array") else None
    found = array_bytes(thing)
    return found[0] if found else None


def ring_items(thing):
    """Items of a SimpleQueue since Python 3.13, oldest first; before that they lie in a list of its own, and this is None as for everything else."""
    kind = type(thing)
    if sys.version_info < (3, 13) or kind.__name__ != "SimpleQueue" or module_of(kind) != "_queue":
        return None
    return [part for part in referents(thing) if part is not kind]


def _length(buffer):
    with buffer.getbuffer() as view:
        return view.nbytes


def _parts(item, kind, depth):
    """What a thing refers to, and how many each of them stands for. `depth`: how many lists it lies in."""
    if kind not in _long or not item:
        return referents(item), 1
    most, some = kWhole, kSome
    if kind in _alike and (depth or type(next(iter(item))) in _alike):
        most = some = kRows[min(depth, len(kRows) - 1)]
    if len(item) <= most:
        return referents(item), 1
    step = len(item) // some
    picked = list(itertools.islice(item, 0, None, step))
    times = len(item) / len(picked)
    if kind is dict:
        picked.extend(itertools.islice(item.values(), 0, None, step))
    return picked, times


class Scale:
    """Weighs things; what was weighed once weighs nothing again."""

    def __init__(self, shared=None):
        self.seen = set()
        self.shared = shared  # function(id) -> True: belongs to somebody else too
        self.arrays = 0

    def weigh(self, thing, most=kObjects, seconds=kSeconds):
        """(bytes, complete)"""
        total = 0
        complete = True
        seen = self.seen
        queue = [(thing, 1, 0)]
        at = 0
        end = time.thread_time() + seconds
        while at < len(queue):
            if at > most or (not at & 63 and time.thread_time() > end):
                return int(total), False
            item, times, depth = queue[at]
            at += 1
            kind = type(item)
            identity = id(item)
            if kind in _numbers:  # many of them weigh: a list of a million floats is more than its pointers
                if identity not in seen and not (kind is int and -5 <= item <= 256):
                    seen.add(identity)
                    total += times * (kFloat if kind is float else taken(sys.getsizeof(item)))
                continue
            if identity in seen or kind in _plain:
                continue
            seen.add(identity)
            if isinstance(item, _skip) or (at > 1 and self.shared is not None and self.shared(identity)):
                continue
            if kind is types.FrameType or kind is types.FunctionType:
                if kind is types.FunctionType:
                    queue.extend((part, times, depth) for part in (*(item.__closure__ or ()), *(item.__defaults__ or ())))
                else:
                    queue.extend((part, times, depth) for part in referents(item) if type(part) is not dict)
                continue
            variables = keras_variables(item)
            if variables is not None:
                queue.extend((variable, times, depth) for variable in variables)
                continue
            found = array_bytes(item)
            if found is not None:
                size, memory = found
                if ("memory", memory) not in seen:
                    seen.add(("memory", memory))
                    total += size * times
                    self.arrays += 1
                total += times * _graph_bytes(item, seen) if module_of(kind).startswith("torch") else 0
                continue
            parts, each = _parts(item, kind, depth) if kind not in (str, bytes, bytearray) else ((), 1)
            try:
                total += times * own_bytes(item, kind, parts)
            except Exception:
                link.pass_on()
                pass
            if not parts:
                continue
            complete = complete and each == 1
            depth += kind in _alike
            queue.extend((part, times * each, depth) for part in parts)
        return int(total), complete


def graph_of(tensor):
    """Nodes of the autograd graph behind a tensor, up to a cap."""
    root = getattr(tensor, "grad_fn", None)
    if root is None:
        return []
    seen = {id(root)}
    nodes = [root]
    at = 0
    while at < len(nodes) and len(nodes) < 5000:
        for node, _ in nodes[at].next_functions:
            if node is not None and id(node) not in seen:
                seen.add(id(node))
                nodes.append(node)
        at += 1
    return nodes


_saved_names = {}


def _graph_bytes(tensor, seen):
    """What the autograd graph behind a tensor keeps. Not where the program packs saved tensors itself: asking would unpack them."""
    from . import torch_hooks

    total = 0
    try:
        if torch_hooks.saved_hooks_used or tensor.grad_fn is None:
            return 0
        for node in graph_of(tensor)[:400]:
            kind = type(node)
            names = _saved_names.get(kind)
            if names is None:
                names = _saved_names[kind] = [n for n in dir(node) if n.startswith("_saved_")]
            for name in names:
                try:
                    value = getattr(node, name)
                except Exception:
                    link.pass_on()
                    continue
                found = array_bytes(value)
                if found and ("memory", found[1]) not in seen:
                    seen.add(("memory", found[1]))
                    if not getattr(value, "is_leaf", False) or not getattr(value, "requires_grad", False):
                        total += found[0]
    except Exception:
        link.pass_on()
        pass
    return total
