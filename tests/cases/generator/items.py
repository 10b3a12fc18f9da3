"""What is kept: values of a known size in bytes, made from the number of the call so that no two are the same object."""
import dataclasses
import typing

# Bytes of one small object with all that belongs to it (header, dictionary, its own integer, float and string), as CPython's allocator rounds them, without
# the pointer to it. generator_test.py weighs them again.
RECORD = {"3.9": 368, "3.10": 368, "3.11": 320, "3.12": 320, "3.13": 320}
PLAIN = {"3.9": 288, "3.10": 288, "3.11": 240, "3.12": 224, "3.13": 224}
SLOTS = ROW = 192
FLOAT = 32


@dataclasses.dataclass
class Item:
    kind: str
    expression: str  # with «i», the number of the call
    size: typing.Callable[[int], int]  # bytes of the item of a call
    imports: tuple = ()
    top: str = ""
    hashable: bool = False
    seconds: float = 0.0  # to make one, roughly


def sized(rng, count, even):
    """An expression for a number of elements and the same as a function: one number, or one that varies from call to call around it."""
    if even or count < 64:
        return str(count), lambda i: count
    spread = max(2, int(count * rng.uniform(0.2, 1.2)))
    factor = rng.choice([7, 13, 29, 101, 353, 7919])
    low = max(1, count - spread // 2)
    return f"{low} + «i» * {factor} % {spread}", lambda i: low + i * factor % spread


def draw_item(rng, scope, python, numpy, size, kinds=None, times=1):
    """An item of about `size` bytes, made so many times in the run. numpy: the libraries there are, NumPy first. kinds: those that the holder can take."""
    small = size <= 6e6 and size * times <= 3e8  # small objects take time
    possible = [kind for kind in (["bytes", "bytearray", "str", *(["floats", "records", "objects", "slots", "rows", "strings"] if small else []), *(["ndarray"] * 6 if numpy else []), *(["tensor"] * 12 if len(numpy) > 1 else [])]) if kinds is None or kind in kinds]
    kind = rng.choice(possible)
    even = rng.random() < 0.6
    if kind in ("bytes", "bytearray", "str"):
        text, number = sized(rng, max(16, int(size)), even)
        if kind == "bytes":
            choices = [f"bytes([«i» % 251]) * ({text})"] + ([f"random.randbytes({text})", f"os.urandom({text})"] if size < 1e6 else [])
            made = rng.choice(choices)
            imports = ("import random",) if "random." in made and "os." not in made else ("import os",) if "os." in made else ()
            return Item(kind, made, lambda i: number(i) + 33, imports, hashable=True, seconds=size * (7e-9 if "os" in made or "random" in made else 3e-9))
        if kind == "bytearray":
            return Item(kind, f"bytearray([«i» % 251]) * ({text})", lambda i: number(i) + 56, seconds=size * 3e-9)
        made = rng.choice([f"(\"%d \" % «i»).ljust({text})", f"(\"%08d\" % «i») * (({text}) // 8)"])
        return Item(kind, made, lambda i: number(i) // 8 * 8 + 49, hashable=True, seconds=size * 3e-9)
    if kind == "ndarray":
        wide = rng.choice([8, 8, 4])
        text, number = sized(rng, max(4, int(size / wide)), even)
        if wide == 4:
            made = rng.choice([f"np.full({text}, «i» * 0.25, dtype=np.float32)", f"np.ones({text}, np.float32) * «i»", f"np.arange({text}, dtype=np.float32)"])
        else:
            made = rng.choice([f"np.full({text}, «i» * 0.5)", f"np.random.random({text})", f"np.ones({text}) * «i»", f"np.arange({text}) * 0.5", f"np.linspace(0.0, «i» + 1.0, {text})"])
        return Item(kind, made, lambda i: number(i) * wide + 112, ("import numpy as np",), seconds=size * 4e-9)
    if kind == "tensor":
        # JAX compiles for each new shape, and that would be kept too: one size only.
        text, number = sized(rng, max(4, int(size / 4)), even or "jax" in numpy)
        made = rng.choice({"torch": [f"torch.full(({text},), «i» * 0.5)", f"torch.randn({text})", f"torch.ones({text}) * «i»"], "jax": [f"jnp.full(({text},), «i» * 0.5)", f"jax.random.uniform(jax.random.PRNGKey(«i»), ({text},))"],
                           "tensorflow": [f"tf.fill([{text}], «i» * 0.5)", f"tf.random.uniform([{text}])"]}[numpy[1]])
        imports = {"torch": ("import torch",), "jax": ("import jax", "import jax.numpy as jnp"), "tensorflow": ("import tensorflow as tf",)}[numpy[1]]
        return Item(kind, made, lambda i: number(i) * 4 + 200, imports, seconds=size * 4e-9 + 2e-5)
    loop = scope["k"]
    each = {"floats": FLOAT + 8, "strings": 64 + 8, "records": RECORD[python] + 8, "objects": PLAIN[python] + 8, "slots": SLOTS + 8, "rows": ROW + 8}[kind]
    text, number = sized(rng, max(1, int(size / each)), even)
    label = f"\"row-%07d\" % {loop}"
    top, imports = "", ("import random",)
    if kind == "floats":
        value = rng.choice(["random.random()", "random.gauss(0.0, 1.0)", "random.uniform(-1.0, 1.0)"])
    elif kind == "strings":
        value, imports = label, ()
    elif kind == "records":
        keys = [scope[hole] for hole in ("key1", "key2", "key3")]
        value = f"{{\"{keys[0]}\": {loop} + 100000, \"{keys[1]}\": random.random(), \"{keys[2]}\": {label}}}"
    elif kind == "rows":
        value = f"({loop} + 100000, random.random(), {label})"
    else:
        keys, name = [scope[hole] for hole in ("key1", "key2", "key3")], scope["Kept"]
        slots = "    __slots__ = (" + ", ".join(f"\"{key}\"" for key in keys) + ")\n\n" if kind == "slots" else ""
        top = f"class {name}:\n{slots}    def __init__(self, {', '.join(keys)}):\n" + "\n".join(f"        self.{key} = {key}" for key in keys)
        value = f"{name}({loop} + 100000, random.random(), {label})"
    return Item(kind, f"[{value} for {loop} in range({text})]", lambda i: number(i) * each + 88, imports, top, seconds=size / each * 6e-7)
