"""Which line adds to a thing that grows: sought in the source by the name it has on its way from the user's code, from the nearest name
outwards; else the line that registers a hook, or where a cached function is defined."""

from collections import deque

from . import cells, frames, sources

_lines = {}  # key of way -> place


def made_at(function):
    """Where a function is defined."""
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    line = code.co_firstlineno
    return {"file": code.co_filename, "line": line, "function": function.__qualname__.replace(".<locals>", ""),
            "text": frames.text(code.co_filename, line), "found_by": "definition"}


def _files(first=None):
    """The user's files, the most likely first."""
    found = []
    if first and frames.has_source(first):
        found.append(first)
    for module in frames.user_modules():
        file = getattr(module, "__file__", None) or (frames.kGiven if frames.given_program() is not None else None)
        if file and file not in found:
            found.append(file)
    return found + cells.files()


def statement(way, place):
    """The statement that adds to the very container at the end of a way, taken apart (edits.py); None where the line adds to what holds it."""
    from . import edits

    if way.key() not in _itself:
        return None
    items = 0
    while way is not None and way.kind == "item":
        way = way.parent
        items += 1
    if way is None or place is None or place.get("file") is None or type(way.name) is not str:
        return None
    return edits.adding(place["file"], place["line"], _added.get((place["file"], place["line"]), way.name), items)


_itself = set()  # keys of ways whose line adds to the container itself, not to a library's object around it
_added = {}  # (file, line) -> the name that the line adds to: an argument may have another than what was given


def find_line(way, thing):
    """Where it is added to: {file, line, function, text, found_by}, or None."""
    known = way.key()
    if known in _lines:
        return _lines[known]
    found = None
    while way.kind == "inside" and way.parent is not None:
        way = way.parent
    named = way
    while named is not None and named.kind == "item":
        named = named.parent
    step, key = way, None  # key: of the item of the step that leads to it
    while step is not None and found is None:
        nested = step is not way
        if step.kind == "chain":
            # self.head = Node(item, self.head) makes it longer; self.prev = prev in Node only ties the knot
            found = _search(step.parent, False, ("grow",)) if step.parent is not None else None
            if found is None:
                found = _search(step, False, ("grow", "set", "call", "aug"))
            if found is None:
                step = step.parent
                continue
        elif step.kind not in ("item", "object"):
            found = _search(step, nested, ("call", "item", "aug", "grow"), key)
            if found is None and step.kind == "attribute" and "hooks" in str(step.name):
                hit = sources.hook_line(_files(), step.name)
                if hit is not None:
                    found = {"file": hit[0], "line": hit[1], "function": hit[2], "text": frames.text(hit[0], hit[1]), "found_by": "source"}
            if found is None and not nested:
                found = _search(step, nested, ("set",)) if not isinstance(thing, (list, dict, set, deque)) else None
        if found is not None and step is named and known == way.key() and len(_itself) < 1000:
            _itself.add(known)
        key = step.name if step.kind == "item" and type(step.name) in (str, int) and not frames.told_key(step.name) == "..." else None
        step = step.parent
    if len(_lines) < 1000:
        _lines[known] = found
    return found


def _search(step, nested, kinds, key=None):
    files = _files(step.file)
    name = step.name
    if type(name) is not str:
        return None
    if step.kind in ("attribute", "class", "chain"):
        owners = step.owners or (step.owner,)
        hit = sources.owner_lines(files, name, True, owners=owners, nested=nested, kinds=kinds, key=key)
        if hit is None and step.kind == "class":
            hit = sources.owner_lines(files, name, False, nested=nested, kinds=kinds, key=key)
        if hit is None and "call" in kinds:
            hit = sources.by_alias(files, name, True, key=key)
    elif step.kind in ("local", "closure", "default"):
        if not frames.has_source(step.file or ""):
            return None
        function = step.function
        if step.kind == "closure":
            function = function.rpartition(".")[0] or function
        hit = sources.owner_lines([step.file], name, False, function=function, nested=nested, kinds=kinds, key=key)
        if hit is None and "call" in kinds:
            hit = sources.by_alias([step.file] + files, name, False, function=function, key=key)
    elif step.kind == "global":
        hit = sources.owner_lines(files[:1] if step.file else files, name, False, nested=nested, kinds=kinds, key=key)
        if hit is None:
            hit = sources.owner_lines(files, name, True, nested=nested, kinds=kinds, key=key)
        if hit is None and "call" in kinds:
            hit = sources.by_alias(files, name, False, key=key)
    else:
        hit = None
    if hit is None:
        return None
    file, add = hit
    if len(_added) < 1000:
        _added[file, add.line] = add.name
    return {"file": file, "line": add.line, "function": add.function, "text": frames.text(file, add.line), "found_by": "source"}
