"""Objects that only refer to one another, counted and left alone: for programs that turned Python's collector off. As the collector finds them: what
has more references than others of its kind account for is held from outside, and so is all that it leads to; the rest is garbage."""

import sys
from collections import Counter

from .referents import referents

kMost = 30000  # objects: about a tenth of a second


def garbage(objects):
    """(how many, about how many bytes, the commonest types), or None where there are too many objects to look through."""
    if len(objects) > kMost:
        return None
    left = {}
    thing = None
    for thing in objects:
        left[id(thing)] = sys.getrefcount(thing) - 3  # `objects`, `thing` and the argument
    thing = None
    for thing in objects:
        for part in referents(thing):
            if id(part) in left:
                left[id(part)] -= 1
    held = [thing for thing in objects if left[id(thing)] > 0]
    reached = {id(thing) for thing in held}
    while held:
        for part in referents(held.pop()):
            if id(part) in left and id(part) not in reached:
                reached.add(id(part))
                held.append(part)
    bytes_, types, seen = 0, Counter(), set()
    for thing in objects:
        if id(thing) in reached:
            continue
        types[type(thing)] += 1
        bytes_ += sys.getsizeof(thing)
        for part in referents(thing):
            if id(part) not in left and id(part) not in seen and not isinstance(part, type):
                seen.add(id(part))
                bytes_ += sys.getsizeof(part)
    return sum(types.values()), bytes_, {kind.__qualname__: count for kind, count in types.most_common(8)}
