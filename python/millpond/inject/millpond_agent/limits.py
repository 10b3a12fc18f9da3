"""Limits that the program keeps itself: the code that adds to a holder asks how long it is, compares that with a number, and takes something out or puts new things in the place of old ones. Such a
holder fills and stops, and before it is full nothing but its code says so."""

from . import frames

_known = {}  # words of a chain -> limit


class Guards:
    """What the search for the lines of one holder met: where its length is asked for, and where something is taken out or replaced."""

    def __init__(self):
        self.asked, self.taking = [], []

    def asks(self, reader, use):
        self.asked.append((reader, use.at))

    def takes(self, reader, use):
        self.taking.append((reader, use.how, use.at))

    def limit(self, objects):
        """The largest number of items that the code leaves; None: none is known. objects: of the chain, the holder first."""
        found = [reader.kept_of_slice(at) for reader, how, at in self.taking if how == "delete"]
        for reader, at in self.asked:
            how, other = reader.compared(at) or ("", None)
            takes = {kind for taker, kind, _ in self.taking if taker.code is reader.code}
            # Where items are only replaced, the length must be what decides whether one is added.
            if takes - {"item"} or (takes and "<" in how):
                found.append(_value(reader.code, other, objects))
        return max((number for number in found if type(number) is int and number > 1), default=None)


def _value(code, other, objects):
    """The number that a length is compared with, as it is now."""
    if type(other) is not tuple:
        return other
    kind, name = other
    if kind == "global":
        module = next((module for module in frames.user_modules() if getattr(module, "__file__", None) == code.co_filename), None)
        return vars(module).get(name) if module is not None else None
    for thing in objects[1:3]:  # what the holder is an attribute of
        values = thing if type(thing) is dict else getattr(thing, "__dict__", None)
        if type(values) is dict and name in values:
            return values[name]
    return None


def learn(words, row, guards, objects):
    """A holder's code was read."""
    limit = guards.limit(objects)
    if limit is None:
        _known.pop(words, None)
    else:
        _known[words] = limit
    tell(words, row)


def tell(words, row):
    """The row of a holder gets the limit, unless it has passed that already."""
    limit, length = _known.get(words), row.get("len")
    if limit is not None and row.get("bound") is None and type(length) is int and length <= limit + 1:
        row["bound"] = limit
