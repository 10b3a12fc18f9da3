"""Cells of a notebook: the user's source that lies in no file. IPython gives it to linecache, without a time to compare a file with."""

import ast

from . import frames, link, texts

kMost, kTextMost, kLinesMost = 200, 8 << 10, 64
_lines = set()  # (file, line) that were told


def files():
    """Their names, the newest first."""
    return [name for name in list(texts.program_cache()) if is_cell(name)][:-kMost - 1:-1]


def is_cell(file):
    entry = texts.program_cache().get(file, ())
    return len(entry) == 4 and entry[1] is None and frames.is_user_file(file)


def told(file, line):
    """A line of the user's was told."""
    if len(_lines) < kLinesMost and is_cell(file):
        _lines.add((file, line))


def say():
    """The functions around these lines: the collector finds them in no file."""
    said = set()
    for file, line in sorted(_lines):
        text = texts.lines(file)
        around = [node for node in ast.walk(ast.parse("".join(text)))
                  if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.lineno <= line <= node.end_lineno]
        inner = max(around, key=lambda node: node.lineno, default=None)
        first, last = (inner.lineno, inner.end_lineno) if inner is not None else (1, len(text))
        if (file, first) not in said:
            said.add((file, first))
            link.note({"note": "source", "file": file, "function": inner.name if inner is not None else "<module>", "first": first,
                       "text": "".join(text[first - 1:last])[:kTextMost]})
