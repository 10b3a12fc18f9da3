"""A part of a program: what it imports, what stands at the top, what it begins with, and what runs in each call."""
import dataclasses
import re

from .text import indent


@dataclasses.dataclass
class Part:
    name: str
    imports: tuple = ()
    top: str = ""
    begin: str = ""
    each: str = ""
    end: str = ""
    per_step: bool = False
    level: object = None
    leak: object = None
    seconds: float = 0.0  # of one call, roughly


def with_item(draw, item, part, level=None):
    """Puts the item where the template says ITEM: in that line, in a line before it, or made by a function of its own. The line that makes it is marked #@born."""
    if not item.expression:  # the template makes what it keeps itself
        part.seconds += item.seconds
        return part
    way = draw.rng.choice(["here", "before", "function", "here"])
    scope = draw.scope
    top = [part.top] if part.top else []
    if item.top:
        top.insert(0, item.top)
    expression = item.expression
    # A template that marks where its bytes are born itself has a buffer of its own: the item is only copied into it.
    born = "" if "#@born" in part.top + part.begin + part.each else "  #@born"
    if way == "function":
        name, number = scope["do_make"], scope["number"]
        body = expression.replace("«i»", number)
        steps = draw.rng.choice([f"    return {body}{born}", f"    {scope['made']} = {body}{born}\n    return {scope['made']}"])
        top.insert(len(top) - bool(part.top), f"def {name}({number}):\n{steps}")
        expression = f"{name}(«i»)"

    def put(text, number):
        lines = []
        for line in text.split("\n"):
            if "ITEM" in line:
                made = expression.replace("«i»", number)
                margin = line[:len(line) - len(line.lstrip())]
                simple = not re.search(r"\b(for|if|elif|while)\b.*ITEM", line)
                if way == "before" and simple and line.count("ITEM") == 1:
                    value = scope["value"]
                    lines.append(f"{margin}{value} = {made}{born}")
                    line = line.replace("ITEM", value)
                else:
                    line = line.replace("ITEM", made) + (born if way != "function" else "")
            lines.append(line)
        return "\n".join(lines)

    # Inside a function of the template the number of the call is its parameter $key; elsewhere it is the loop's.
    part.top = "\n\n\n".join(put(text, scope.given.get("key", "0")) for text in top)
    part.begin, part.each = put(part.begin, "0"), put(part.each, "«i»")
    part.imports = tuple(part.imports) + tuple(item.imports)
    part.seconds += item.seconds
    if level is not None:
        part.level = level
    return part


def wrapped(scope, part, state):
    """The part's call as a function of its own, at the top, that gets the state it uses as arguments."""
    used = [name for name in state if re.search(rf"§{name}\b", part.each)]
    if any(re.search(rf"§{name}\b\s*(=|\+=)(?!=)", part.each) for name in used):
        return part
    number = scope["number2"]
    body = part.each.replace("«i»", number).replace("§", "")
    name = scope["do_part"]
    part.top += ("\n\n\n" if part.top else "") + f"def {name}({', '.join([*used, number])}):\n{indent(body)}"
    part.each = f"{name}({', '.join(['§' + one for one in used] + ['«i»'])})"
    return part
