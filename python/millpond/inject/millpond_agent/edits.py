"""What a change of the source has to know, so that a fix can be code that runs: the statement that adds to a container, taken apart, and what kind of
things it keeps; the decorator of a cached function; where a figure could be closed; the call whose argument makes a tf.function trace again.

Statements are told as they stand in the file, with places in them as offsets in bytes of UTF-8, so the only key with source in it is `text`. What things
are is asked of their types, never of names: a name in the source is followed to its object where that needs no code of the program to run."""

import ast
import binascii
import sys
from functools import wraps

from . import frames, link, sizes, sources

kTextMost = 1000  # bytes of a statement
kFilesMost = 8
kKnownMost = 200
_files = {}  # file -> _File or None
_known = {}  # what was asked before -> answer
_functions = (ast.FunctionDef, ast.AsyncFunctionDef)
_simple = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign)
_atoms = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.ListComp, ast.JoinedStr)


class _File:
    """A source file as bytes, lines and a tree. Only UTF-8 with plain newlines: of others the offsets would lie."""

    def __init__(self, file):
        with open(file, "rb") as handle:
            self.raw = handle.read(sources.kFileMost + 1)
        if len(self.raw) > sources.kFileMost or b"\r" in self.raw or b"\f" in self.raw or self.raw.startswith(b"\xef\xbb\xbf"):
            raise ValueError("not a plain source file")
        self.raw.decode("utf-8")
        self.lines = self.raw.split(b"\n")
        self.tree = ast.parse(self.raw)
        self.digest = "%d:%08x" % (len(self.raw), binascii.crc32(self.raw))
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def statement(self, node):
        """The statement a node belongs to."""
        while node is not None and not isinstance(node, ast.stmt):
            node = self.parents.get(node)
        return node

    def block(self, statement):
        """The list of statements that this one stands in."""
        parent = self.parents.get(statement)
        for _, value in ast.iter_fields(parent) if parent is not None else ():
            if isinstance(value, list) and statement in value:
                return value
        return None

    def source(self, node):
        if node.lineno == node.end_lineno:
            return self.lines[node.lineno - 1][node.col_offset:node.end_col_offset]
        return b"\n".join([self.lines[node.lineno - 1][node.col_offset:], *self.lines[node.lineno:node.end_lineno - 1],
                           self.lines[node.end_lineno - 1][:node.end_col_offset]])


class _Part:
    """Whole lines of a file, told as a note."""

    def __init__(self, file, first, last):
        self.file, self.first = file, first
        self.text = b"\n".join(file.lines[first - 1:last])

    def offset(self, line, column):
        return sum(len(text) + 1 for text in self.file.lines[self.first - 1:line - 1]) + column

    def span(self, node):
        return [self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)]

    def note(self, **more):
        if len(self.text) > kTextMost:
            return None
        return dict({"line": self.first, "text": self.text.decode("utf-8"), "digest": self.file.digest}, **more)


def _read(file):
    if file not in _files:
        if len(_files) >= kFilesMost:
            _files.clear()
        try:
            _files[file] = _File(file) if file and not file.startswith("<") else None
        except Exception:
            link.pass_on()
            _files[file] = None
    return _files[file]


def _once(function):
    """Answers are kept: every look asks again."""

    @wraps(function)
    def asked(*args):
        key = (function.__name__, *args)
        if key not in _known:
            if len(_known) >= kKnownMost:
                _known.clear()
            try:
                _known[key] = function(*args)
            except Exception:  # a file that is not what it was, a tree of another kind
                link.pass_on()
                _known[key] = None
        return _known[key]

    return asked


def forget():
    """Trees are large: none stays between two looks."""
    _files.clear()


def _pure(node):
    """Whether a target can be written twice: reading it changes nothing and costs nothing."""
    if isinstance(node, ast.Name):
        return True
    if isinstance(node, ast.Attribute):
        return _pure(node.value)
    if isinstance(node, ast.Subscript):
        index = node.slice.value if node.slice.__class__.__name__ == "Index" else node.slice
        return _pure(node.value) and _pure_index(index)
    return False


def _pure_index(node):
    if isinstance(node, ast.BinOp):
        return _pure_index(node.left) and _pure_index(node.right)
    if isinstance(node, ast.Tuple):
        return all(_pure_index(part) for part in node.elts)
    return isinstance(node, ast.Constant) or _pure(node)


def _alone(file, statement):
    """Nothing but a comment shares its lines."""
    before = file.lines[statement.lineno - 1][:statement.col_offset]
    after = file.lines[statement.end_lineno - 1][statement.end_col_offset:].strip()
    return not before.strip() and (not after or after.startswith(b"#"))


def _resolve(node, module):
    """The object that a dotted name stands for in a module, by dictionaries alone; None where that does not tell."""
    if isinstance(node, ast.Name):
        return vars(module).get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _resolve(node.value, module)
        return vars(owner).get(node.attr) if type(owner) is type(sys) else None
    return None


def _module_of(file):
    for module in frames.user_modules():
        if getattr(module, "__file__", None) == file:
            return module
    main = sys.modules.get("__main__")
    return main if getattr(main, "__file__", None) == file else None


def _name_for(thing, module):
    """How a module's source can call a thing: `tf` for tensorflow where it was imported by that name."""
    return next((name for name, value in vars(module).items() if value is thing and name.isidentifier()), None)


# Statements that add --------------------------------------------------------------------------------------------------


@_once
def adding(file, line, name, items):
    """The statement on a line that adds to `name`, or to what lies so many `items` deep in it, taken apart: {line, text, digest, how, target, value, atom, alone, parts}; None where it is no such
    statement by itself. how: the method that is called, `item` (target[...] = value), `aug` (target += value) or `set` (target = value)."""
    source = _read(file)
    if source is None:
        return None
    found = [part for part in (_adding(node, name, items) for node in ast.walk(source.tree)
                               if isinstance(node, _simple) and node.lineno <= line <= node.end_lineno) if part]
    if len(found) != 1:
        return None
    statement, how, target, value = found[0]
    if not _pure(target):
        return None
    part = _Part(source, statement.lineno, statement.end_lineno)
    literal = value.elts if isinstance(value, (ast.Tuple, ast.List)) else value.values if isinstance(value, ast.Dict) else []
    inner = [part.span(node) + [isinstance(node, _atoms)] for node in literal] if len(literal) <= 16 and not any(isinstance(n, ast.Starred) for n in literal) else []
    return part.note(how=how, target=part.span(target), value=part.span(value), atom=isinstance(value, _atoms), alone=_alone(source, statement), parts=inner,
                     end=part.offset(statement.end_lineno, statement.end_col_offset), indent=statement.col_offset)


def _adding(node, name, items):
    """(statement, how, target, value) where a statement adds to something of that name."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        call = node.value
        if not call.args or call.keywords or any(isinstance(a, ast.Starred) for a in call.args):
            return None
        how, target, value = call.func.attr, call.func.value, call.args[-1]
        if how == "insert" and not (isinstance(call.args[0], ast.Constant) and call.args[0].value == 0):
            return None  # somewhere in the middle
    elif isinstance(node, ast.AugAssign):
        if not isinstance(node.op, ast.Add):
            return None
        how, target, value = "aug", node.target, node.value
    elif isinstance(node, ast.Assign) and len(node.targets) == 1:
        how, target, value = "set", node.targets[0], node.value
    else:
        return None
    if how in ("aug", "set") and isinstance(target, ast.Subscript):
        how, target = "item" if how == "set" else "no", target.value
    base = target
    while isinstance(base, ast.Subscript):
        base = base.value
        items -= 1
    if how == "no" or items or getattr(base, "attr", getattr(base, "id", None)) != name:
        return None
    return node, how, target, value


# What is kept ---------------------------------------------------------------------------------------------------------


def kind_of(thing):
    """{family, elements, graph, traceback} of a thing that is kept: what a change may do with it."""
    kind = type(thing)
    root = sizes.module_of(kind).partition(".")[0]
    torch = sys.modules.get("torch")
    if root == "torch" and torch.Tensor in kind.__mro__:  # a class of the user's would run his code
        return {"family": "torch", "elements": int(thing.nelement()), "graph": thing.grad_fn is not None}
    numpy = sys.modules.get("numpy")
    if numpy is not None and kind is numpy.ndarray:
        return {"family": "numpy", "elements": int(thing.size)} if thing.dtype.kind in "fiub" else {"family": "object"}
    eager = getattr(sys.modules.get("tensorflow.python.framework.ops"), "EagerTensor", None)
    if root == "tensorflow" and eager in kind.__mro__:
        plain = thing.dtype.is_floating or thing.dtype.is_integer or thing.dtype.is_bool
        return {"family": "tensorflow", "elements": int(thing.shape.num_elements() or 0)} if plain else {"family": "object"}
    array = getattr(sys.modules.get("jax"), "Array", None)
    if root in ("jaxlib", "jax") and isinstance(thing, array):
        return {"family": "jax", "elements": int(thing.size)}
    if BaseException in kind.__mro__:
        return {"family": "exception", "traceback": BaseException.__traceback__.__get__(thing) is not None}
    return {"family": "number"} if kind in (int, float, bool, complex) else {"family": "object"}


def kind_of_all(things):
    """One description for some things of a container; `parts` where they are tuples, lists or dictionaries of one length. None where they differ."""
    described = []
    for thing in things:
        row = kind_of(thing)
        if type(thing) in (tuple, list) and len(thing) <= 16:
            row["parts"] = [kind_of(part) for part in thing]
        elif type(thing) is dict and len(thing) <= 16:
            row["parts"] = [kind_of(part) for part in thing.values()]
        described.append(row)
    return _joined(described)


def _joined(rows):
    if not rows or len({row["family"] for row in rows}) != 1:
        return None
    first = dict(rows[0])
    if "elements" in first:
        first["elements"] = max(row["elements"] for row in rows)
    for key in ("graph", "traceback"):
        if key in first:
            first[key] = any(row[key] for row in rows)
    parts = [row.get("parts") for row in rows]
    first.pop("parts", None)
    if all(part is not None for part in parts) and len({len(part) for part in parts}) == 1:
        joined = [_joined(list(column)) for column in zip(*parts)]
        if all(joined):
            first["parts"] = joined
    return first


# Cached functions -----------------------------------------------------------------------------------------------------


def _decorators(source, module, line):
    """Of the functions that begin at this line, or whose decorators do: (decorator, what it names or calls, the object which that is)."""
    for node in ast.walk(source.tree):
        if not isinstance(node, _functions) or not node.decorator_list or not node.decorator_list[0].lineno <= line <= node.lineno:
            continue
        for decorator in node.decorator_list:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            yield decorator, called, _resolve(called, module)


@_once
def caching(file, line):
    """The decorator that makes a function's unbounded cache: {..., how: "decorator", target, name}; `name`: how this file can call functools.lru_cache."""
    source = _read(file)
    module = _module_of(file)
    if source is None or module is None:
        return None
    functools = sys.modules.get("functools")  # the program's
    for decorator, called, thing in _decorators(source, module, line):
        if thing is None or functools is None or thing not in (getattr(functools, "cache", None), functools.lru_cache):
            continue
        if thing is functools.lru_cache:
            name = source.source(called).decode("utf-8")
        elif isinstance(called, ast.Attribute):
            name = source.source(called.value).decode("utf-8") + ".lru_cache"
        else:
            name = _name_for(functools.lru_cache, module)
            owner = _name_for(functools, module)
            name = name or (owner and owner + ".lru_cache")
        part = _Part(source, decorator.lineno, decorator.end_lineno)
        return part.note(how="decorator", target=part.span(decorator), value=part.span(decorator), name=name) if name else None
    return None


# Figures --------------------------------------------------------------------------------------------------------------


@_once
def closing(file, line):
    """Where a figure that a line makes could be closed: the last statement of its block, {line, text, digest, how: "close", end, indent, alone, name}; `name`:
    the call that closes it. None where it is handed out of the block."""
    source = _read(file)
    module = _module_of(file)
    pyplot = sys.modules.get("matplotlib.pyplot")
    if source is None or module is None or pyplot is None:
        return None
    for node in ast.walk(source.tree):
        if not isinstance(node, (ast.Assign, ast.Expr)) or not node.lineno <= line <= node.end_lineno or not isinstance(node.value, ast.Call):
            continue
        called = node.value.func
        if _resolve(called, module) not in (pyplot.figure, pyplot.subplots) or not isinstance(called, ast.Attribute):
            return None
        figure = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(figure, ast.Tuple):
            figure = figure.elts[0] if figure.elts else None
        block = source.block(node)
        if block is None or (figure is not None and not isinstance(figure, ast.Name)):
            return None
        last = block[-1]
        after = block[block.index(node) + 1:]
        leaves = (ast.Return, ast.Break, ast.Continue, ast.Raise, ast.Yield, ast.YieldFrom, ast.Global, ast.Nonlocal)
        if not after or any(isinstance(part, leaves) for statement in after for part in ast.walk(statement)) or not _alone(source, last):
            return None
        if isinstance(source.parents.get(node), ast.Module):
            return None
        name = "%s.close(%s)" % (source.source(called.value).decode("utf-8"), figure.id if figure is not None else "")
        part = _Part(source, last.lineno, last.end_lineno)
        return part.note(how="close", name=name, end=part.offset(last.end_lineno, last.end_col_offset), indent=node.col_offset, alone=True)
    return None


# tf.functions ---------------------------------------------------------------------------------------------------------


@_once
def traced(file, line):
    """The decorator that makes a function a tf.function: {..., how: "tf.function", target, value, call}; call: it has brackets already, which close at `end`."""
    source = _read(file)
    module = _module_of(file)
    tensorflow = sys.modules.get("tensorflow")
    if source is None or module is None or tensorflow is None:
        return None
    for decorator, called, thing in _decorators(source, module, line):
        if thing is not tensorflow.function:
            continue
        part = _Part(source, decorator.lineno, decorator.end_lineno)
        given = {keyword.arg: keyword.value for keyword in decorator.keywords} if isinstance(decorator, ast.Call) else {}
        if isinstance(decorator, ast.Call) and (decorator.args or "reduce_retracing" in given or "input_signature" in given):
            return None
        jit = given.get("jit_compile")
        return part.note(how="tf.function", target=part.span(called), value=part.span(decorator), given=len(given),
                         jit=part.span(jit) if isinstance(jit, ast.Constant) and jit.value is True else None)
    return None


@_once
def argument(file, span, position, name):
    """The argument at a position, or of that name, of the call at `span` (line, end line, column, end column): {..., how: "argument", value, atom,
    name, hoisted}; name: that of TensorFlow's module in the file."""
    source = _read(file)
    module = _module_of(file)
    tensorflow = sys.modules.get("tensorflow")
    if source is None or module is None or tensorflow is None:
        return None
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Call) or (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset) != span:
            continue
        if any(isinstance(part, ast.Starred) for part in node.args):
            return None
        value = next((keyword.value for keyword in node.keywords if keyword.arg == name), None)
        if value is None and position < len(node.args):
            value = node.args[position]
        statement = source.statement(node)
        short = _name_for(tensorflow, module)
        if value is None or short is None or not isinstance(statement, _simple):
            return None
        part = _Part(source, statement.lineno, statement.end_lineno)
        return part.note(how="argument", value=part.span(value), atom=isinstance(value, _atoms), name=short, hoisted=_hoisted(source, statement, value))
    return None


def _hoisted(source, statement, value):
    """Of a lambda: the loop that it can stand before, {line, text, indent}; None where it uses what the loop sets."""
    if not isinstance(value, ast.Lambda):
        return None
    loop, node = None, statement
    while node is not None and not isinstance(node, (*_functions, ast.Lambda, ast.ClassDef)):
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            loop = node
        node = source.parents.get(node)
    if loop is None or not _alone(source, loop.body[-1]):
        return None
    own = {a.arg for a in value.args.args + value.args.kwonlyargs}
    used = {part.id for part in ast.walk(value.body) if isinstance(part, ast.Name)} - own
    changed = {part.id for part in ast.walk(loop) if isinstance(part, ast.Name) and isinstance(part.ctx, (ast.Store, ast.Del))}
    if used & changed or source.lines[loop.lineno - 1][:loop.col_offset].strip():
        return None
    line = source.lines[loop.lineno - 1]
    taken = {part.id for part in ast.walk(source.tree) if isinstance(part, ast.Name)} | {part.arg for part in ast.walk(source.tree) if isinstance(part, ast.arg)}
    free = next((name for name in ("given", "given_once", "given_before_the_loop") if name not in taken), None)
    return {"line": loop.lineno, "text": line.decode("utf-8"), "indent": loop.col_offset, "name": free} if free and len(line) <= kTextMost else None


def call_at(code, instruction):
    """(line, end line, column, end column) of the call that an instruction makes; None before Python 3.11."""
    if not hasattr(code, "co_positions"):
        return None
    for index, (line, end, column, end_column) in enumerate(code.co_positions()):
        if index == instruction // 2:
            return (line, end, column, end_column) if None not in (line, end, column, end_column) else None
    return None


@_once
def only_cast(file, line, name):
    """Whether a function uses a parameter as a whole number of any kind would do: every use is under a cast of TensorFlow's. A number given as a tensor has
    a type, and one that is mixed with others may be refused."""
    source = _read(file)
    module = _module_of(file)
    tensorflow = sys.modules.get("tensorflow")
    if source is None or module is None or tensorflow is None:
        return False
    for node in ast.walk(source.tree):
        if not isinstance(node, _functions) or not min([d.lineno for d in node.decorator_list] + [node.lineno]) <= line <= node.lineno:
            continue
        uses = [part for statement in node.body for part in ast.walk(statement) if isinstance(part, ast.Name) and part.id == name]
        return bool(uses) and all(_under_cast(source, use, module, tensorflow) for use in uses)
    return False


def _under_cast(source, node, module, tensorflow):
    while True:
        parent = source.parents.get(node)
        if isinstance(parent, ast.Call):
            return node in parent.args[:1] and _resolve(parent.func, module) is tensorflow.cast
        whole = isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)) and all(
            side is node or (isinstance(side, ast.Constant) and type(side.value) is int) for side in (parent.left, parent.right))
        if not whole:
            return False
        node = parent
