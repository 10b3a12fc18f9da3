"""Objects that refer to one another in a circle: how each holds the next."""

import gc
import types
from collections import deque

from . import chains
from .referents import referents

kMost = 4000  # objects that are looked at
_apart = (type, types.ModuleType, types.CodeType, types.BuiltinFunctionType)  # what is not garbage, and leads everywhere


def ring(thing):
    """The steps of the shortest way from an object back to itself, the last first; empty: there is none near by."""
    above = {id(thing): None}
    waiting = deque((thing,))
    while waiting and len(above) < kMost:
        parent = waiting.popleft()
        for part in referents(parent):
            if part is thing:
                return _steps(thing, parent, above)
            if id(part) in above or isinstance(part, _apart) or not gc.is_tracked(part) or (type(part) is dict and "__builtins__" in part):
                continue
            above[id(part)] = parent
            waiting.append(part)
    return []


def _steps(thing, last, above):
    way = [thing, last]  # each is held by the next
    while way[-1] is not thing:
        way.append(above[id(way[-1])])
    around = way + 3 * way[1:]  # whoever holds the first of them is part of the circle too
    steps = (chains.edge(around[at + 1], around[at], *around[at + 2:at + 4]) for at in range(len(way) - 1))
    return [step for step in steps if step is not None]
