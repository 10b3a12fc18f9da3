"""The YAML that docs/ci.md has, read without a module for it: maps and lists by indent, `[a, b]`, and scalars. What it does not know is an error, so a page that grows is noticed."""
import re


def scalar(text):
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        return [scalar(part) for part in text[1:-1].split(",") if part.strip()]
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    if text[:1] in "{&*!|>%@`\"'":
        raise ValueError(f"not plain: {text}")
    return {"true": True, "false": False}.get(text, text)


def load(text):
    lines = [(len(line) - len(line.lstrip()), line.strip()) for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
    value, rest = block(lines, lines[0][0])
    if rest:
        raise ValueError(f"does not belong to what is above it: {rest[0][1]}")
    return value


def block(lines, indent):
    """(value, lines after it) of the lines that begin at this indent."""
    out = None
    while lines and lines[0][0] == indent:
        words = lines[0][1]
        if words.startswith("- "):
            out = [] if out is None else out
            item = words[2:]
            if re.match(r"[\w.-]+:( |$)", item):
                value, lines = block([(indent + 2, item), *lines[1:]], indent + 2)
            else:
                value, lines = scalar(item), lines[1:]
            out.append(value)
            continue
        out = {} if out is None else out
        key, colon, value = words.partition(":")
        if not colon or not isinstance(out, dict) or key in out:
            raise ValueError(f"no key of a map: {words}")
        lines = lines[1:]
        if value.strip():
            out[key] = scalar(value)
        elif lines and lines[0][0] > indent:
            out[key], lines = block(lines, lines[0][0])
        else:
            out[key] = None
    return out, lines
