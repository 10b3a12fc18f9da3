"""The user's source, read as a syntax tree: which lines add to a thing of a given name, which lines stand in a loop, what a function is
called. Each file is read once and only what is asked about later is kept of it."""

import ast

from . import frames, link, texts

kAdders = frozenset(("append", "extend", "add", "insert", "appendleft", "extendleft", "update", "setdefault", "push", "put", "put_nowait",
                     "write", "writelines", "heappush", "frombytes", "register", "store", "record"))
kFileMost = 2_000_000
_files = {}


class Add:
    """A line that adds to something. how: 'call', 'item', 'aug', 'grow' (x = f(x)), 'set' (plain assignment), 'pass' (handed to a function)"""

    __slots__ = ("name", "attribute", "nested", "how", "method", "line", "function", "owner", "looped", "base", "key", "constant")

    def __init__(self, name, attribute, nested, how, method, line, where, base, key=None):
        self.name, self.attribute, self.nested, self.how, self.method, self.line = name, attribute, nested, how, method, line
        self.key = key  # of NAME[key], where it is written out
        self.function, self.owner, self.looped = where
        self.base = base
        self.constant = False  # it adds one and the same object each time, like None, which takes no memory


class Source:
    def __init__(self, file):
        self.adds = []  # Add
        self.aliases = []  # (alias, name, attribute?, function, key): alias = x.name, alias = name, or alias = name[key]
        self.passed = []  # (name, attribute?, callee, position or keyword, line, where, key)
        self.hooks = []  # (method, line, where) of register_forward_hook and the like
        self.parameters = {}  # function name -> [(qualified name, parameter names)]
        self.functions = {}  # first line (decorators too) -> qualified name
        self.loops = []  # (first line, last line)
        self.breaks = []  # lines of functions: a loop around a def is not a loop around its body
        text = _text_of(file)
        if len(text) <= kFileMost:
            _Reader(self).visit(ast.parse(text))

    def in_loop(self, line):
        inner = max((begin for begin, end in self.breaks if begin <= line <= end), default=0)
        return any(begin <= line <= end and begin >= inner for begin, end in self.loops)


def _text_of(file):
    """A cell of a notebook has the name of a file that is not there; what ran is known to linecache."""
    if file == frames.kGiven:
        return frames.given_program() or ""
    try:
        with open(file, "rb") as handle:
            return handle.read(kFileMost + 1)
    except OSError:
        lines = texts.lines(file)
        if not lines:
            raise
        return "".join(lines)


class _Reader(ast.NodeVisitor):
    def __init__(self, source):
        self.source = source
        self.names = []  # of enclosing classes and functions
        self.owner = None
        self.loop = 0

    def where(self):
        return ".".join(self.names) or "<module>", self.owner, self.loop > 0

    def visit_ClassDef(self, node):
        outer = self.owner
        self.owner = node.name
        self.names.append(node.name)
        self.generic_visit(node)
        self.names.pop()
        self.owner = outer

    def visit_FunctionDef(self, node):
        for decorator in node.decorator_list:
            self.visit(decorator)
        self.names.append(node.name)
        qualified = ".".join(self.names)
        arguments = node.args
        parameters = [a.arg for a in getattr(arguments, "posonlyargs", []) + arguments.args + arguments.kwonlyargs]
        self.source.parameters.setdefault(node.name, []).append((qualified, parameters))
        for line in range(min([d.lineno for d in node.decorator_list] + [node.lineno]), node.lineno + 1):
            self.source.functions[line] = qualified
        if node.body:
            self.source.breaks.append((node.body[0].lineno, node.end_lineno))
        outer, self.loop = self.loop, 0
        for child in node.body:
            self.visit(child)
        self.loop = outer
        self.names.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def _looped(self, node):
        self.visit(node.iter if hasattr(node, "iter") else node.test)
        self.source.loops.append((node.body[0].lineno, node.body[-1].end_lineno))
        self.loop += 1
        for child in node.body:
            self.visit(child)
        self.loop -= 1
        for child in node.orelse:
            self.visit(child)

    visit_For = visit_AsyncFor = visit_While = _looped

    def _comprehension(self, node):
        self.source.loops.append((node.lineno, node.end_lineno))
        self.generic_visit(node)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def add(self, target, how, method, line, key=None):
        found = _named(target)
        if found:
            name, attribute, nested, base = found
            self.source.adds.append(Add(name, attribute, nested, how, method, line, self.where(), base, _key(target) if nested else key))

    def visit_Call(self, node):
        function = node.func
        if isinstance(function, ast.Attribute):
            if "hook" in function.attr or function.attr.startswith("register"):
                self.source.hooks.append((function.attr, node.lineno, self.where()))
            if function.attr in kAdders:
                before = len(self.source.adds)
                self.add(function.value, "call", function.attr, node.lineno if node.lineno == node.end_lineno else _line_of(function))
                for made in self.source.adds[before:]:
                    made.constant = bool(node.args) and all(isinstance(argument, ast.Constant) for argument in node.args)
                if function.attr in ("heappush", "put") and node.args:
                    self.add(node.args[0], "call", function.attr, node.lineno)
        elif isinstance(function, ast.Name) and function.id in ("heappush", "heappushpop", "setattr") and node.args:
            self.add(node.args[0], "call", function.id, node.lineno)
        callee = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)
        if callee:
            for position, argument in list(enumerate(node.args)) + [(k.arg, k.value) for k in node.keywords]:
                found = _named(argument)
                if found and (not found[2] or _key(argument) is not None):
                    self.source.passed.append((found[0], found[1], callee, position, node.lineno, self.where(), _key(argument) if found[2] else None))
        self.generic_visit(node)

    def visit_Assign(self, node):
        for target in node.targets:
            for part in target.elts if isinstance(target, (ast.Tuple, ast.List)) else (target,):
                self.assigned(part, node)
        self.generic_visit(node)

    def visit_AnnAssign(self, node):
        if node.value is not None:
            self.assigned(node.target, node)
        self.generic_visit(node)

    def visit_NamedExpr(self, node):
        self.assigned(node.target, node)
        self.generic_visit(node)

    def assigned(self, target, node):
        if isinstance(target, ast.Subscript):
            self.add(target.value, "item", None, node.lineno, _written(target.slice))
            wanted = _named(target), _key(target)
            if wanted[1] is not None and any(isinstance(part, ast.Subscript) and (_named(part), _key(part)) == wanted for part in ast.walk(node.value)):
                self.add(target, "grow", None, node.lineno)
            return
        found = _named(target)
        if not found or found[2]:
            return
        same = any(_named(part) is not None and _named(part)[:2] == found[:2] for part in ast.walk(node.value)
                   if isinstance(part, (ast.Name, ast.Attribute)))
        self.add(target, "grow" if same else "set", None, node.lineno)
        value = _named(node.value)
        if value and not found[1]:
            self.source.aliases.append((found[0], value[0], value[1], self.where()[0], _key(node.value) if value[2] else None))

    def visit_AugAssign(self, node):
        target = node.target
        if isinstance(target, ast.Subscript):
            self.add(target.value, "item", None, node.lineno, _written(target.slice))
        self.add(target, "aug", None, node.lineno)
        self.generic_visit(node)


def _line_of(attribute):
    """Of a call over several lines: the line of the method's name."""
    return attribute.end_lineno


def _written(node):
    """A key that is written out; None: any other."""
    node = getattr(node, "value", None) if type(node).__name__ == "Index" else node  # 3.8's form, which some tools still make
    return node.value if isinstance(node, ast.Constant) and type(node.value) in (str, int) else None


def _key(node):
    """Of NAME[key]...: the key that stands next to the name."""
    key = None
    while True:
        if isinstance(node, ast.Subscript):
            key, node = _written(node.slice), node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("setdefault", "get"):
            key, node = _written(node.args[0]) if node.args else None, node.func.value
        else:
            return key


def _named(node):
    """(name, is an attribute, reached through an item, what the attribute is of) of a.b.NAME, NAME, NAME[k], NAME.setdefault(k, []), NAME.get(k)"""
    nested = False
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
            nested = True
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("setdefault", "get"):
            node = node.func.value
            nested = True
        else:
            break
    if isinstance(node, ast.Attribute):
        return node.attr, True, nested, getattr(node.value, "id", None)
    if isinstance(node, ast.Name):
        return node.id, False, nested, None
    return None


def read(file):
    """The Source of a file; None where there is none."""
    if file not in _files:
        try:
            _files[file] = Source(file)
        except Exception:
            link.pass_on()
            _files[file] = None
    return _files[file]


def in_loop(file, line):
    source = read(file)
    return source is not None and source.in_loop(line)


def qualified(file, first_line):
    source = read(file)
    return source.functions.get(first_line) if source else None


def owner_lines(files, name, attribute, owners=(), function=None, nested=False, kinds=("call", "item", "aug", "grow"), key=None):
    """The best line that adds to `name` (of the classes `owners`, or within `function`), as (file, Add), or None. key: it is NAME[key] that is added to, no other item."""
    best = None
    for rank, file in enumerate(files):
        source = read(file)
        if source is None:
            continue
        for add in source.adds:
            if add.name != name or add.attribute != attribute or add.how not in kinds:
                continue
            if function and not _within(add.function, function):
                continue
            if key is not None and add.key is not None and (add.key != key or not add.nested):
                continue
            score = (
                add.owner in owners if owners else True,
                key is None or add.key == key,
                add.nested == nested,
                not add.constant,
                add.how != "item" or add.nested,
                not add.function.endswith("__init__") or add.looped,
                -rank,
                add.looped,
                add.line,
            )
            if best is None or score > best[0]:
                best = (score, file, add)
    return (best[1], best[2]) if best else None


def hook_line(files, attribute):
    """The line that registers a hook kept in an attribute such as _forward_hooks: (file, line, function), the one in a loop or method first."""
    words = [word for word in attribute.strip("_").split("_") if word not in ("hooks", "hook")]
    best = None
    for file in files:
        source = read(file)
        for method, line, (function, _, looped) in source.hooks if source else ():
            score = (sum(word in method for word in words), looped, not function.endswith("__init__"), line)
            if best is None or score > best[0]:
                best = (score, file, line, function)
    return best[1:] if best else None


def _within(inner, outer):
    return inner == outer or inner.startswith(outer + ".")


def by_alias(files, name, attribute, function=None, key=None):
    """A line that adds to it under another name in the same function, or in a function that gets it as an argument. key: not to it, but to NAME[key]."""
    for file in files:
        source = read(file)
        if source is None:
            continue
        for alias, value, is_attribute, where, of in source.aliases:
            if value == name and is_attribute == attribute and alias != name and of in (key, None) and (not function or _within(where, function)):
                found = owner_lines([file], alias, False, function=where, key=key if of is None else None, nested=key is not None and of is None)
                if found:
                    return found
        for value, is_attribute, callee, position, line, where, of in source.passed:
            if value != name or is_attribute != attribute or of not in (key, None) or (function and not _within(where[0], function)):
                continue
            found = _in_callee(files, callee, position, key if of is None else None)
            if found:
                return found
    return None


def _in_callee(files, callee, position, key=None):
    for file in files:
        source = read(file)
        if source is None:
            continue
        for qualified_name, parameters in source.parameters.get(callee, ()):
            for shift in (0, 1):  # a method has self
                if isinstance(position, int):
                    index = position + shift
                    parameter = parameters[index] if index < len(parameters) else None
                else:
                    parameter = position if position in parameters else None
                if parameter and parameter != "self":
                    found = owner_lines([file], parameter, False, function=qualified_name, key=key, nested=key is not None)
                    if found:
                        return found
    return None
