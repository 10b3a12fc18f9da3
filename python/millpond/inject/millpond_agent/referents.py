"""What an object refers to directly."""

import gc
import types

_names_of = types.ModuleType.__dict__["__dict__"].__get__


def referents(thing):
    """As gc.get_referents tells, but of a module its names alone. Modules in C tell the collector also of objects in their free lists, as _asyncio does in Python 3.12: those are not alive, and
    whoever takes a reference to one and gives it back frees it once more; the list leads back into itself then, and the next one who follows it never ends."""
    return [_names_of(thing)] if issubclass(type(thing), types.ModuleType) else gc.get_referents(thing)
