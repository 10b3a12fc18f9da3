"""Where the data of tensors lies, where the object does not point to it: torch, TensorFlow, JAX. Subclasses may run code of the program's when they are asked, so only the frameworks' own
types are."""

import sys
from collections import deque
from itertools import islice

from .roots import Walk

kMost = 20000
kLook = 0.02  # seconds, for the user's own containers


def of_torch(objects):
    """Those of torch's own types, the newest where there are many."""
    kinds = {kind for kind, data_of in _kinds().items() if data_of is _torch}
    return [thing for thing in objects if type(thing) in kinds][-kMost:] if kinds else []


def pairs(objects):
    """[address of a tensor, that of its data, ...]"""
    kinds = _kinds()
    if not kinds:
        return []
    found = []
    for thing in objects:
        data_of = kinds.get(type(thing))
        if data_of is not None and len(found) < 2 * kMost:
            try:
                data = data_of(thing)
                if data:
                    found += (id(thing), data)
            except Exception:  # a tensor without storage, or on another device
                pass
    return found


def any_framework():
    return bool(_kinds())


def _kinds():
    """Type -> the function that tells where its data lies, of what is imported."""
    kinds = {}
    torch = sys.modules.get("torch")
    if getattr(torch, "nn", None) is not None:
        kinds.update({kind: _torch for kind in (torch.Tensor, getattr(torch.nn, "Parameter", None)) if kind is not None})
    eager = getattr(sys.modules.get("tensorflow.python.framework.ops"), "EagerTensor", None)
    if eager is not None:
        kinds[eager] = _tensorflow
    array = getattr(sys.modules.get("jax._src.array"), "ArrayImpl", None)
    if array is not None:
        kinds[array] = _jax
    return kinds


def _torch(tensor):
    return tensor.data_ptr() - tensor.storage_offset() * tensor.element_size() if tensor.device.type == "cpu" else 0  # a slice keeps all of what it is a slice of


def _tensorflow(tensor):
    return tensor._numpy_internal().__array_interface__["data"][0] if "CPU" in tensor._device_name() else 0


def _jax(array):
    return array.unsafe_buffer_pointer() if not array.is_deleted() and all(device.platform == "cpu" for device in array.devices()) else 0


def of_user():
    """What lies in the user's containers: where all objects are not gone through, because there are many or because most of them are the parent's."""
    things = []
    for found in Walk(kLook).run():
        thing = found.thing
        things.append(thing)
        if type(thing) in (list, tuple, deque, set, dict):
            values = thing.values() if type(thing) is dict else thing
            for value in islice(reversed(values) if type(thing) in (list, deque) else list(values), kMost):
                if type(value) in (list, tuple):
                    things += value
                elif type(value) is dict:
                    things += value.values()
                else:
                    things.append(value)
    return things
