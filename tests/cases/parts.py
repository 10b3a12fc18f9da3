"""What generated programs are put together from: the work of a step, and what keeps something of it."""
from names import WORDS, indent

# ---------------------------------------------------------------------------------------------------------------- work
# A workload gives the state, the lines of one step (with {S} before each piece of state) and what there is to keep.

def pick_shape(rng, payload, item):
    cols = rng.choice([c for c in (16, 32, 64, 100, 128, 200, 256, 300, 512) if c * item * 4 <= payload])
    rows = max(4, round(payload / (cols * item)))
    return rows, cols


def numpy_work(rng, n, payload):
    kind, item = rng.choice([("np.float32", 4), ("np.float64", 8)])
    rows, cols = pick_shape(rng, payload, item)
    width = rng.choice([8, 12, 16, 24, 32])
    total = max(2 * rows, 1500)
    x, w, data, out, loss, fwd, i = n["x"], n["w"], n["data"], n["out"], n["loss"], n["forward"], n["i"]
    body = rng.choice([
        ["return np.tanh({x} @ {w})"],
        ["return np.maximum({x} @ {w}, 0)"],
        ["return 1 / (1 + np.exp(-({x} @ {w})))"],
        ["z_ = {x} @ {w}", "z_ -= z_.max(axis=1, keepdims=True)", "np.exp(z_, out=z_)", "z_ /= z_.sum(axis=1, keepdims=True)", "return z_"],
        ["z_ = {x} @ {w}", "norm = np.sqrt((z_ ** 2).sum(axis=1, keepdims=True)) + 1e-6", "return z_ / norm"],
        ["return np.cos({x} @ {w})"],
        ["a = ({x} ** 2).sum(axis=1)[:, None]", "return a - 2 * ({x} @ {w}) + ({w} ** 2).sum(axis=0)"],
    ])
    body = [b.format(x=x, w=w) for b in body]
    update = rng.choice([
        ["{S}{w} -= RATE * grad"],
        ["{S}{w} -= RATE * np.sign(grad)"],
        ["{S}velocity *= 0.9", "{S}velocity -= RATE * grad", "{S}{w} += {S}velocity"],
        ["{S}{w} -= RATE * grad / (np.sqrt((grad ** 2).mean()) + 1e-6)"],
    ])
    momentum = "velocity" in update[0]
    draw = rng.choice(["{S}{data}[{S}rng.integers(0, len({S}{data}), ROWS)]", "{S}{data}[({i} * ROWS) % (len({S}{data}) - ROWS + 1):][:ROWS]"])
    step = [f"{x} = {draw}", f"{out} = {fwd}({x}, {{S}}{w})  #@made", f"error = {out} - {x} @ {{S}}teacher", f"grad = {x}.T @ error / len({x})", *update,
            f"{loss} = float((error ** 2).mean())"]
    step = [s.replace("{w}", w).replace("{data}", data).replace("{i}", i) for s in step]
    state = [("rng", f"np.random.default_rng({rng.randrange(100)})"), (data, f"{n['maker']}({{rng}}, {total}, WIDTH)"),
             ("teacher", f"{{rng}}.standard_normal((WIDTH, COLS)).astype({kind})"), (w, f"np.zeros((WIDTH, COLS), {kind})")]
    if momentum:
        state.append(("velocity", f"np.zeros((WIDTH, COLS), {kind})"))
    defs = [[f"def {n['maker']}(rng, count, width):", *indent(rng.choice([
        [f"return rng.standard_normal((count, width)).astype({kind})"],
        ["centers = rng.standard_normal((7, width)) * 2", "rows_ = centers[rng.integers(0, 7, count)]", f"return (rows_ + rng.standard_normal((count, width))).astype({kind})"],
        [f"base = rng.random((count, width)).astype({kind})", "base -= base.mean(axis=0)", "return base"]]))],
        [f"def {fwd}({x}, {w}):", *indent(body)]]
    wraps = ["bare", "bare", "copy", "tuple", "dict", "view", "bytes", "obj"] + (["tolist"] if payload < 400e3 else [])
    return {"imports": ["import numpy as np"], "packages": ["numpy"], "framework": "numpy", "consts": [("ROWS", rows), ("COLS", cols), ("WIDTH", width), ("RATE", rng.choice([0.01, 0.02, 0.005]))],
            "defs": defs, "state": state, "step": step, "mutable": [w] if not momentum else [w], "value": out, "scalar": f"float({out}.mean())", "loss": loss, "i": i, "bytes": rows * cols * item,
            "elements": rows * cols, "wraps": wraps, "flops": rows * cols * width * 4, "in_place": True, "x": x}


def plain_work(rng, n, payload):
    """Records in Python lists; what is kept is the batch, or what was computed from it."""
    x, w, data, loss, i, make = n["x"], n["w"], n["data"], n["loss"], n["i"], n["maker"]
    kind = rng.choice(["tuples", "dicts", "strings", "floats", "array", "bytes"])
    consts, per = [("SLOTS", rng.choice([16, 32, 64]))], {"tuples": 190, "dicts": 340, "strings": 110, "floats": 32, "array": 8, "bytes": 1}[kind]
    count = max(8, round(payload / per))
    make_lines = {
        "tuples": ["return [(rng.random(), rng.randrange(10 ** 6), \"u%d\" % rng.randrange(10 ** 7)) for _ in range(count)]"],
        "dicts": ["batch_ = []", "for _ in range(count):", "    batch_.append({\"user\": rng.randrange(10 ** 6), \"score\": rng.random(), \"label\": rng.randrange(2)})", "return batch_"],
        "strings": ["return [\"user=%d page=/item/%d dwell=%.6f\" % (rng.randrange(10 ** 6), rng.randrange(10 ** 6), rng.random()) for _ in range(count)]"],
        "floats": ["return [rng.random() for _ in range(count)]"],
        "array": ["return array(\"d\", (rng.random() for _ in range(count)))" if count < 20000 else "return array(\"d\", [rng.random() for _ in range(64)] * (count // 64))"],
        "bytes": ["return rng.randbytes(count)" if count < 300000 else "return rng.randbytes(4096) * (count // 4096)"]}[kind]
    use = {"tuples": "r[0]", "dicts": "r[\"score\"]", "strings": "len(r) / 50", "floats": "r", "array": "r", "bytes": "r / 255"}[kind]
    exact = {"array": (count if count < 20000 else count // 64 * 64) * 8, "bytes": count if count < 300000 else count // 4096 * 4096}.get(kind)
    defs = [[f"def {make}(rng, count):", *indent(make_lines)],
            ["def fit_slots(weights_, values):", *indent(["total = 0.0", "for k_, value in enumerate(values):", "    slot = k_ % SLOTS", "    gap = value - weights_[slot]",
                                                         "    weights_[slot] += 0.01 * gap", "    total += gap * gap", "return total / max(1, len(values))"])]]
    head = min(count, rng.choice([800, 1500, 2500]))
    step = [f"{x} = {make}({{S}}rng, COUNT)  #@made", f"{loss} = fit_slots({{S}}{w}, [{use} for r in {x}[:{head}]])"]
    state = [("rng", f"random.Random({rng.randrange(100)})"), (w, "[0.0] * SLOTS")]
    imports = ["import random"] + (["from array import array"] if kind == "array" else [])
    return {"imports": imports, "packages": [], "framework": "python", "consts": consts + [("COUNT", count)], "defs": defs, "state": state, "step": step, "mutable": [w], "value": x,
            "scalar": f"len({x})", "loss": loss, "i": i, "bytes": exact, "elements": count, "wraps": ["bare", "bare", "tuple", "dict", "obj"] + (["aslist"] if kind in ("tuples", "strings") else []),
            "flops": 0, "in_place": True, "x": x, "seconds": count * {"tuples": 1.1e-6, "dicts": 1e-6, "strings": 1.3e-6, "floats": 1e-7, "array": 1.2e-7, "bytes": 1e-9}[kind]}


def torch_work(rng, n, payload):
    rows, cols = pick_shape(rng, payload, 4)
    width = rng.choice([16, 32, 48])
    x, out, loss, i, model = n["x"], n["out"], n["loss"], n["i"], "model"
    act = rng.choice(["nn.Tanh()", "nn.ReLU()", "nn.Sigmoid()", "nn.GELU()"])
    defs = [[f"def {n['maker']}(count):", *indent([f"gen = torch.Generator().manual_seed({rng.randrange(99)})", "return torch.randn(count, WIDTH, generator=gen)"])],
            ["def build():", *indent([f"return nn.Sequential(nn.Linear(WIDTH, 24), {act}, nn.Linear(24, COLS))"])]]
    step = [f"{x} = {{S}}{n['data']}[torch.randint(0, len({{S}}{n['data']}), (ROWS,))]", f"{out} = {{S}}{model}({x})  #@made", f"{loss} = ({out} - {x}[:, :1]).pow(2).mean()",
            "{S}optimizer.zero_grad()", f"{loss}.backward()", "{S}optimizer.step()", f"{loss} = {loss}.item()"]
    state = [(n["data"], f"{n['maker']}({max(2 * rows, 1500)})"), (model, "build()"), ("optimizer", f"torch.optim.{rng.choice(['SGD', 'Adam', 'RMSprop'])}({{model}}.parameters(), lr=1e-3)")]
    return {"imports": ["import torch", "from torch import nn"], "packages": ["torch"], "framework": "torch", "consts": [("ROWS", rows), ("COLS", cols), ("WIDTH", width)], "defs": defs, "state": state,
            "step": step, "mutable": [], "value": rng.choice([f"{out}.detach()", f"{out}.detach().clone()", f"{out}.detach().numpy().copy()"]), "scalar": f"{out}.mean().item()", "loss": loss, "i": i,
            "bytes": rows * cols * 4, "elements": rows * cols, "wraps": ["bare", "bare", "tuple", "dict", "obj"], "flops": rows * cols * 24 * 6, "in_place": True, "x": x}


def jax_work(rng, n, payload):
    rows, cols = pick_shape(rng, payload, 4)
    width = rng.choice([16, 32, 48])
    x, w, out, loss, i, fwd = n["x"], n["w"], n["out"], n["loss"], n["i"], n["forward"]
    act = rng.choice(["jnp.tanh", "jax.nn.relu", "jax.nn.sigmoid", "jnp.cos"])
    defs = [[f"def {fwd}({w}, {x}):", *indent([f"return {act}({x} @ {w})"])],
            [f"def objective_of({w}, {x}):", *indent([f"z_ = {fwd}({w}, {x})", f"return jnp.mean((z_ - {x}[:, :1]) ** 2), z_"])],
            ["@jax.jit", f"def update_step({w}, {x}):", *indent([f"(value, z_), grad = jax.value_and_grad(objective_of, has_aux=True)({w}, {x})", f"return {w} - RATE * grad, value, z_"])]]
    step = [f"{x} = jnp.asarray({{S}}{n['data']}[{{S}}rng.integers(0, len({{S}}{n['data']}), ROWS)])", f"{{S}}{w}, {loss}, {out} = update_step({{S}}{w}, {x})  #@made", f"{loss} = float({loss})"]
    state = [("rng", f"np.random.default_rng({rng.randrange(99)})"), (n["data"], f"{{rng}}.standard_normal(({max(2 * rows, 1500)}, WIDTH)).astype(np.float32)"), (w, "jnp.zeros((WIDTH, COLS))")]
    return {"imports": ["import jax", "import jax.numpy as jnp", "import numpy as np"], "packages": ["jax", "numpy"], "framework": "jax", "consts": [("ROWS", rows), ("COLS", cols), ("WIDTH", width), ("RATE", 0.01)],
            "defs": defs, "state": state, "step": step, "mutable": [w], "value": rng.choice([out, out, f"np.array({out})"]), "scalar": f"float({out}.mean())", "loss": loss, "i": i, "bytes": rows * cols * 4,
            "elements": rows * cols, "wraps": ["bare", "bare", "tuple", "dict", "obj"], "flops": rows * cols * width * 6, "in_place": False, "x": x}


def tf_work(rng, n, payload):
    rows, cols = pick_shape(rng, payload, 4)
    width = rng.choice([16, 32, 48])
    x, out, loss, i = n["x"], n["out"], n["loss"], n["i"]
    act = rng.choice(["relu", "tanh", "gelu", "sigmoid"])
    defs = [["def build():", *indent([f'return keras.Sequential([keras.Input((WIDTH,)), keras.layers.Dense(24, activation="{act}"), keras.layers.Dense(COLS)])'])],
            ["@tf.function", f"def apply_step(model, optimizer, {x}):", *indent(["with tf.GradientTape() as tape:", f"    z_ = model({x}, training=True)", f"    value = tf.reduce_mean((z_ - {x}[:, :1]) ** 2)",
                                                                            "grads = tape.gradient(value, model.trainable_variables)", "optimizer.apply_gradients(zip(grads, model.trainable_variables))", "return value, z_"])]]
    step = [f"{x} = tf.constant({{S}}{n['data']}[{{S}}rng.integers(0, len({{S}}{n['data']}), ROWS)])", f"{loss}, {out} = apply_step({{S}}model, {{S}}optimizer, {x})  #@made", f"{loss} = float({loss})"]
    state = [("rng", f"np.random.default_rng({rng.randrange(99)})"), (n["data"], f"{{rng}}.standard_normal(({max(2 * rows, 1500)}, WIDTH)).astype(np.float32)"), ("model", "build()"),
             ("optimizer", "keras.optimizers.SGD(1e-3)")]
    return {"imports": ["import keras", "import numpy as np", "import tensorflow as tf"], "packages": ["tensorflow", "keras", "numpy"], "framework": "tensorflow", "consts": [("ROWS", rows), ("COLS", cols), ("WIDTH", width)],
            "defs": defs, "state": state, "step": step, "mutable": [], "value": rng.choice([out, out, f"{out}.numpy().copy()"]), "scalar": f"float(tf.reduce_mean({out}))", "loss": loss, "i": i,
            "bytes": rows * cols * 4, "elements": rows * cols, "wraps": ["bare", "bare", "tuple", "dict", "obj"], "flops": rows * cols * 24 * 6, "in_place": True, "x": x}


WORK = {"numpy": numpy_work, "python": plain_work, "torch": torch_work, "jax": jax_work, "tensorflow": tf_work}


# ------------------------------------------------------------------------------------------------------------- holders
# A holder gives definitions, lines before the loop, lines where something is kept ({R} is its name there) and lines at the end of a period.

def wrap_value(rng, n, kind, value, scalar, key, fixed):
    """The expression that is kept, and a definition it may need."""
    v = scalar if fixed else value
    if kind == "copy" and not fixed:
        return f"{v}.copy()", []
    if kind == "tuple":
        return f"({key}, {v})", []
    if kind == "dict":
        return f'{{"at": {key}, "value": {v}}}', []
    if kind == "view" and not fixed:
        return f"{v}[:4]", []
    if kind == "bytes" and not fixed:
        return f"{v}.tobytes()", []
    if kind == "tolist" and not fixed:
        return f"{v}.tolist()", []
    if kind == "aslist" and not fixed:
        return f"sorted({v})", []
    if kind == "obj":
        thing = n.new("Thing")
        return f"{thing}({key}, {v})", [["@dataclass", f"class {thing}:", "    at: object", "    value: object", ""]]
    return v, []


def make_holder(rng, n, kind, value, scalar, key, wrap, fixed, how, numpy_like, payload):
    """how: the way of the fix. Returns None where kind and what is kept do not go together."""
    h = {"imports": [], "defs": [], "init": [], "name": None, "site": [], "close": [], "end": [], "fix": "", "also": []}
    scalar_fix = how == "scalar"
    v, defs = wrap_value(rng, n, wrap, value, scalar, key, fixed and scalar_fix)
    h["defs"] += [d for d in defs]
    if defs:
        h["imports"].append("from dataclasses import dataclass")
    bounded = fixed and not scalar_fix
    h["fix"] = "Keep a number instead of the object." if scalar_fix else "Bound the container or drop what is no longer needed."
    attr, meth, obj, cls, func, glob_, p = n.new("list"), n.new("method"), n.new("obj"), n.new("Class"), n.new("func"), n.new("global"), rng.choice(["value", "item", "what", "entry", "v"])
    end_use = rng.random() < 0.5
    if kind == "list":
        h["name"], h["init"] = attr, [f"{attr} = []"]
        h["site"] = [f"{{R}}.append({v})  #@keep"] if not bounded else [f"{{R}}[:] = [{v}]"]
        if end_use:
            h["end"] = [f'print("{rng.choice(["kept", "collected", "have"])}", len({{R}}), "{rng.choice(["entries", "results", "rows"])}")']
    elif kind == "dict":
        d = n.new("dict")
        h["name"], h["init"] = d, [f"{d} = {{}}"]
        h["site"] = [f"{{R}}[{key}] = {v}  #@keep"] if not bounded else [f'{{R}}["last"] = {v}']
    elif kind == "defaultdict":
        d = n.new("dict")
        h["imports"] += ["from collections import defaultdict"]
        h["name"], h["init"] = d, [f"{d} = defaultdict(list)"]
        label = rng.choice(["epoch_ % 5", "int(loss_ * 10) % 7"]).replace("epoch_", "{E}").replace("loss_", "{L}")
        h["site"] = [f"{{R}}[{label}].append({v})  #@keep"] if not bounded else [f"{{R}}[0] = [{v}]"]
    elif kind == "global_list":
        h["defs"] += [[f"{glob_} = []"], [f"def {func}({p}):", *indent([f"{glob_}.append({p})  #@keep" if not bounded else f"{glob_}[:] = [{p}]", f"return len({glob_})"])]]
        h["site"] = [f"{func}({v})"]
    elif kind == "global_dict":
        h["defs"] += [[f"{glob_} = {{}}"], [f"def {func}(key_, {p}):", *indent([f"{glob_}[key_] = {p}  #@keep" if not bounded else f'{glob_}["now"] = {p}'])]]
        h["site"] = [f"{func}({key}, {v})"]
    elif kind == "closure":
        maker = rng.choice(["make_logger", "recorder_for", "new_tracker", "build_hook", "make_observer"])
        h["defs"] += [[f"def {maker}():", f"    {attr} = []", "", f"    def {func}({p}):", f"        {attr}.append({p})  #@keep" if not bounded else f"        {attr}[:] = [{p}]", f"        return len({attr})",
                       "", f"    return {func}"]]
        h["name"], h["init"] = obj, [f"{obj} = {maker}()"]
        h["site"] = [f"{{R}}({v})"]
    elif kind == "default_arg":
        h["defs"] += [[f"def {func}({p}, {attr}=[]):", *indent([f"{attr}.append({p})  #@keep" if not bounded else f"{attr}[:] = [{p}]", f"return {attr}[-1]"])]]
        h["site"] = [f"{func}({v})"]
    elif kind == "class_attr":
        thing = n.new("Thing")
        h["defs"] += [[f"class {thing}:", f"    {attr} = []", "", f"    def __init__(self, {p}):", f"        self.{p} = {p}",
                       f"        {thing}.{attr}.append(self)  #@keep" if not bounded else f"        {thing}.{attr}[:] = [self]", "", "    def size(self):", f"        return 1 if self.{p} is None else 2"]]
        h["site"] = [f"{thing}({v}).size()  #@also"]
    elif kind in ("object", "callback"):
        meth = "on_end" if kind == "callback" else meth
        count = rng.choice(["self.count", "self.calls", "self.n"])
        body = [f"{count} += 1"] if rng.random() < 0.6 else []
        h["defs"] += [[f"class {cls}:", "    def __init__(self):", f"        self.{attr} = []", f"        {count} = 0", "", f"    def {meth}(self, {p}):", *indent(body, 2),
                       f"        self.{attr}.append({p})  #@keep" if not bounded else f"        self.{attr} = [{p}]", "", "    def describe(self):", f'        return f"{{{count}}} calls"']]
        if kind == "callback":
            h["name"], h["init"] = "callbacks", [f"callbacks = [{cls}()]"]
            h["site"] = ["for cb in {R}:", f"    cb.on_end({v})"]
        else:
            h["name"], h["init"] = obj, [f"{obj} = {cls}()"]
            h["site"] = [f"{{R}}.{meth}({v})"]
            if end_use:
                h["end"] = ["print({R}.describe())"]
    elif kind == "chain":
        node, link = n.new("Node"), rng.choice(["prev", "before", "parent", "next_", "older"])
        h["defs"] += [[f"class {node}:", f'    __slots__ = ("{p}", "{link}")', "", f"    def __init__(self, {p}, {link}):", f"        self.{p} = {p}", f"        self.{link} = {link}"],
                      [f"class {cls}:", "    def __init__(self):", "        self.head = None", "", f"    def {meth}(self, {p}):",
                       f"        self.head = {node}({p}, self.head)  #@keep" if not bounded else f"        self.head = {node}({p}, None)", "        return self.head"]]
        h["name"], h["init"], h["site"] = obj, [f"{obj} = {cls}()"], [f"{{R}}.{meth}({v})"]
    elif kind == "bytearray":
        if not numpy_like or not value.isidentifier():
            return None
        h["name"], h["init"] = "blob", ["blob = bytearray()"]
        h["site"] = [f"{{R}}.extend({value}.tobytes())  #@keep"] if not fixed else [f"{{R}}[:] = {value}.tobytes()"]
        h["fix"] = "Write the bytes to a file and keep none of them."
    elif kind == "concat":
        if not numpy_like or not value.isidentifier():
            return None
        flat = rng.random() < 0.5
        add = "np.concatenate([self.{a}, {p}.ravel()])" if flat else "np.vstack([self.{a}, {p}])"
        start = "np.empty(0, np.float32)" if flat else "None"
        lines = [f"self.{attr} = {add.format(a=attr, p=p)}  #@keep"] if not fixed else [f"self.{attr} = {p}.ravel()" if flat else f"self.{attr} = {p}"]
        if not flat and not fixed:
            lines = [f"if self.{attr} is None:", f"    self.{attr} = {p}", "else:", *indent(lines)]
        h["defs"] += [[f"class {cls}:", "    def __init__(self):", f"        self.{attr} = {start}", "", f"    def {meth}(self, {p}):", *indent(lines, 2)]]
        h["name"], h["init"], h["site"] = obj, [f"{obj} = {cls}()"], [f"{{R}}.{meth}({value})"]
        h["fix"] = "Keep the newest part only."
    elif kind == "bytesio":
        if not numpy_like or not value.isidentifier():
            return None
        h["imports"] += ["import io"]
        h["name"], h["init"] = "stream", ["stream = io.BytesIO()"]
        h["site"] = [f"{{R}}.write({value}.tobytes())  #@keep"] if not fixed else ["{R}.seek(0)", f"{{R}}.write({value}.tobytes())"]
        h["fix"] = "Write to a file, or start over in the buffer."
    elif kind == "cycle_registry":
        node = n.new("Node")
        h["defs"] += [[f"{glob_} = {{}}"], [f"class {node}:", f"    def __init__(self, key_, {p}):", "        self.key = key_", f"        self.{p} = {p}", "        self.parts = []"],
                      [f"class {n.new('Node')}Part:", "    def __init__(self, owner, rank):", "        self.owner = owner", "        self.rank = rank"]]
        part = h["defs"][-1][0][6:-1]
        if fixed:
            h["imports"] += ["import weakref"]
        owner = "weakref.proxy(node)" if fixed else "node"
        h["defs"] += [[f"def {func}(key_, {p}):", *indent([f"node = {node}(key_, {p})", f"node.parts = [{part}({owner}, rank) for rank in range(3)]",
                                                           f"{glob_}[key_] = node  #@keep" if not fixed else f"{glob_}[0] = node", "return len(node.parts)"])]]
        h["site"] = [f"{func}({key}, {v})"]
        h["fix"] = "Do not register every node; refer to the owner weakly."
    elif kind == "native":
        if payload < 20e3:
            return None
        free_it = ["self.libc.free(block_)"] if fixed else []
        arg = rng.choice(["ctypes.CDLL(None)", 'ctypes.CDLL("libc.so.6")'])
        h["imports"] += ["import ctypes"]
        h["defs"] += [[f"SCRATCH = {payload}"], [f"class {cls}:", "    def __init__(self):", f"        self.libc = {arg}", "        self.libc.malloc.restype = ctypes.c_void_p", "        self.libc.malloc.argtypes = [ctypes.c_size_t]",
                       "        self.libc.free.argtypes = [ctypes.c_void_p]", "        self.libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]", "        self.used = 0", "",
                       f"    def {meth}(self):", f"        block_ = self.libc.malloc(SCRATCH){'' if fixed else '  #@keep'}", f"        self.libc.memset(block_, self.used % 7, SCRATCH){'' if fixed else '  #@also'}", *indent(free_it, 2),
                       "        self.used += 1"]]
        h["name"], h["init"], h["site"] = obj, [f"{obj} = {cls}()"], [f"{{R}}.{meth}()"]
        h["fix"], h["cause"], h["bytes"] = "Free the native block after use.", "N1", payload
    elif kind == "queue":
        h["imports"] += ["import queue"]
        q = rng.choice(["queue.Queue()", "queue.SimpleQueue()"])
        h["name"], h["init"] = "inbox", [f"inbox = {q}"]
        h["site"] = [f"{{R}}.put({v})  #@keep"] + (["{R}.get()"] if bounded else [])
    elif kind == "hooks":
        h["name"], h["init"] = "hooks", ["hooks = []"]
        if rng.random() < 0.5:
            h["imports"] += ["from functools import partial"]
            call = f"partial(id, {v})"
        else:
            call = f"lambda held={v}: id(held)"
        h["site"] = [f"{{R}}.append({call})  #@keep"]
        if bounded:
            h["site"] += ["while {R}:", "    {R}.pop()()"]
        h["end"] = ["for hook in {R}:", "    hook()"]
    elif kind == "heap":
        h["imports"] += ["import heapq", "import itertools"]
        h["defs"] += [[f"class {cls}:", "    def __init__(self):", f"        self.{attr} = []", "        self.ticket = itertools.count()", "", f"    def {meth}(self, rank, {p}):",
                       f"        heapq.heappush(self.{attr}, (rank, next(self.ticket), {p})){'' if bounded else '  #@keep'}", *([f"        if len(self.{attr}) > 1:", f"            heapq.heappop(self.{attr})"] if bounded else [])]]
        h["name"], h["init"], h["site"] = obj, [f"{obj} = {cls}()"], [f"{{R}}.{meth}({{L}}, {v})"]
    elif kind == "log_handler":
        h["imports"] += ["import logging"]
        h["defs"] += [[f"class {cls}(logging.Handler):", "    def __init__(self):", "        super().__init__()", f"        self.{attr} = []", "", "    def emit(self, record):",
                       f"        self.{attr}.append(record)  #@keep" if not bounded else f"        self.{attr} = [record]"],
                      ['audit = logging.getLogger("audit")', "audit.setLevel(logging.DEBUG)", "audit.propagate = False", f"audit.addHandler({cls}())"]]
        h["site"] = [f'audit.debug("%s", {v})']
    elif kind == "nested":
        inner = rng.choice(["extra", "stats", "debug", "info"])
        h["name"], h["init"] = "run_info", [f'run_info = {{"name": "{rng.choice(WORDS)}", "{inner}": {{}}}}']
        h["site"] = [f'{{R}}["{inner}"].setdefault("{attr}", []).append({v})  #@keep'] if not bounded else [f'{{R}}["{inner}"]["{attr}"] = {v}']
    elif kind == "setattr":
        h["defs"] += [[f"class {cls}:", "    pass"]]
        h["name"], h["init"] = obj, [f"{obj} = {cls}()"]
        h["site"] = [f'setattr({{R}}, f"{attr}_{{{key}}}", {v})  #@keep'] if not bounded else [f"{{R}}.{attr} = {v}"]
    else:
        raise ValueError(kind)
    return h


HOLDERS = ["list", "list", "dict", "dict", "defaultdict", "global_list", "global_dict", "closure", "default_arg", "class_attr", "object", "object", "callback", "chain", "bytearray", "concat", "bytesio",
           "cycle_registry", "native", "native", "queue", "hooks", "heap", "log_handler", "nested", "setattr"]
