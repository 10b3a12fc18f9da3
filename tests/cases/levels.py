"""Programs that do not leak: flat, cache, reserve, retention, fragmentation."""
import math

from layout import assemble, finish, truth
from names import Names, indent, progress


def sawtooth(rng, framework, fixed):
    """Big temporary arrays in each period; nothing is kept."""
    n = Names(rng)
    periods = rng.randint(14, 36)
    size = int(math.exp(rng.uniform(math.log(20e6), math.log(200e6))) / 8)
    prog = progress(rng, rng.choice(["epoch", "round", "pass"]), "epoch", "PERIODS", "score", silent_ok=True)
    use = rng.choice([["grid = rng.random(SIZE)", "np.sqrt(grid, out=grid)", "score = float(grid.mean())", "del grid"],
                      ["parts = [rng.random(SIZE // 8) for _ in range(8)]", "score = float(sum(p.mean() for p in parts)) / 8"],
                      ["score = float(np.tanh(rng.random(SIZE)).std())"],
                      ["table = {k: rng.random(SIZE // 16) for k in range(16)}", "score = max(float(v.max()) for v in table.values())", "table.clear()"]])
    fn = rng.choice(["evaluate", "validation_score", "full_pass", "bootstrap"])
    defs = [[f"def {fn}(rng):", *indent(use), "    return score"]]
    body = [f"rng = np.random.default_rng({rng.randrange(99)})", "w = np.zeros((64, 64))", *prog["before"], "for epoch in range(PERIODS):",
            *indent([f"for _ in range({rng.randint(3, 9)}):", "    x = rng.standard_normal((256, 64))", "    w -= 0.01 * x.T @ (x @ w - x) / 256", f"    time.sleep({round(rng.uniform(0.008, 0.02), 4)})", f"score = {fn}(rng)", *prog["end"]])]
    lines = assemble(rng, n, "run.py", ["import time", "import numpy as np", *prog["imports"]], [("PERIODS", periods), ("SIZE", size)], defs, body)
    source, tags = finish(lines)
    return source, tags, truth("flat", "none", "none", "epoch", prog["every"], prog, {"framework": "numpy", "packages": ["numpy"]}, also_accept=["reserve"], holder_kind="temporary", units_total=periods)


def garbage(rng, framework, fixed):
    """Reference cycles that the collector frees."""
    n = Names(rng)
    periods, steps = rng.randint(20, 40), rng.randint(20, 40)
    size = rng.choice([400, 800, 1500])
    node, p = n["Node"], rng.choice(["value", "state", "rows"])
    prog = progress(rng, rng.choice(["epoch", "round", "cycle"]), "epoch", "PERIODS", "total", silent_ok=True)
    defs = [[f"class {node}:", f"    def __init__(self, {p}, parent=None):", f"        self.{p} = {p}", "        self.parent = parent", "        self.children = []", "        if parent is not None:", "            parent.children.append(self)"],
            ["def grow(rng, depth):", f"    root = {node}(rng.random(SIZE))", "    here = root", "    for _ in range(depth):", f"        here = {node}(rng.random(SIZE), here)", "    return root"],
            ["def walk(root):", "    total = 0.0", "    todo = [root]", "    while todo:", "        here = todo.pop()", f"        total += float(here.{p}.sum())", "        todo.extend(here.children)", "    return total"]]
    body = [f"rng = np.random.default_rng({rng.randrange(99)})", *prog["before"], "for epoch in range(PERIODS):", *indent(["total = 0.0", "for _ in range(STEPS):", "    total += walk(grow(rng, DEPTH))", f"    time.sleep({round(4.0 / periods / steps, 4)})", *prog["end"]])]
    lines = assemble(rng, n, "run.py", ["import time", "import numpy as np", *prog["imports"]], [("PERIODS", periods), ("STEPS", steps), ("SIZE", size), ("DEPTH", rng.randint(4, 12))], defs, body)
    source, tags = finish(lines)
    return source, tags, truth("flat", "none", "none", "epoch", prog["every"], prog, {"framework": "numpy", "packages": ["numpy"]}, also_accept=["reserve"], holder_kind="cycles", units_total=periods)


def cache(rng, framework, fixed):
    """Something that fills during the first part of the run and then stays."""
    n = Names(rng)
    periods = rng.randint(24, 40)
    fill = rng.randint(5, max(6, int(periods * 0.4)))
    steps = rng.randint(4, 16)
    total = math.exp(rng.uniform(math.log(60e6), math.log(350e6)))
    entries = fill * steps
    count = max(500, int(total / entries / 8))
    kind = rng.choice(["dict", "lru", "deque", "ring", "ordered"])
    lib = rng.choice(["numpy", "numpy", "numpy", "python"])
    if lib == "numpy":
        make, imports, pk = ["rng = np.random.default_rng(key)", "return np.cumsum(rng.random(COUNT))"], ["import numpy as np"], ["numpy"]
    else:
        count = min(count // 6, 30000)
        make, imports, pk = ["rng = random.Random(key)", "return [(rng.random(), key + k) for k in range(COUNT)]"], ["import random"], []
    head = "x[:50]" if lib == "numpy" else "[v for v, _ in x[:50]]"
    fn, store = rng.choice(["decode", "load_item", "features_for", "read_clip", "tile"]), n["dict"]
    prog = progress(rng, rng.choice(["epoch", "round", "pass"]), "epoch", "PERIODS", "w", silent_ok=True)
    key = "epoch * STEPS + i"
    defs, init = [[f"def {fn}(key):", *indent(make)]], []
    if kind == "dict":
        get = rng.choice(["get", "fetch", "item"])
        defs += [[f"{store.upper()} = {{}}"], [f"def {get}(key):", f"    if key not in {store.upper()}:", f"        {store.upper()}[key] = {fn}(key)  #@holder", f"    return {store.upper()}[key]"]]
        step, consts = [f"x = {get}(({key}) % CLIPS)"], [("CLIPS", entries)]
    elif kind == "lru":
        imports += ["import functools"]
        defs = [[f"@functools.lru_cache(maxsize={entries})  #@holder", *defs[0]]]
        step, consts = [f"x = {fn}({key})"], []
    elif kind == "deque":
        imports += ["from collections import deque"]
        init = [f"{store} = deque(maxlen=CAPACITY)"]
        step, consts = [f"x = {fn}({key})", f"{store}.append(x)  #@holder"], [("CAPACITY", entries)]
    elif kind == "ring":
        cls = rng.choice(["ReplayBuffer", "Reservoir", "Window", "RingBuffer"])
        defs.append([f"class {cls}:", "    def __init__(self, capacity):", "        self.capacity = capacity", "        self.rows = []", "        self.at = 0", "", "    def add(self, row):", "        if len(self.rows) < self.capacity:",
                     "            self.rows.append(row)  #@holder", "        else:", "            self.rows[self.at] = row", "        self.at = (self.at + 1) % self.capacity"])
        init = [f"{store} = {cls}(CAPACITY)"]
        step, consts = [f"x = {fn}({key})", f"{store}.add(x)"], [("CAPACITY", entries)]
    else:
        imports += ["from collections import OrderedDict"]
        init = [f"{store} = OrderedDict()"]
        step = [f"x = {fn}({key})", f"{store}[{key}] = x  #@holder", f"if len({store}) > CAPACITY:", f"    {store}.popitem(last=False)"]
        consts = [("CAPACITY", entries)]
    sleep = round(max(0.0005, 4.2 / periods / steps - count * (1.2e-8 if lib == "numpy" else 2.5e-7)), 4)
    body = ["w = 0.0", *init, *prog["before"], "for epoch in range(PERIODS):", *indent(["for i in range(STEPS):", *indent([*step, f"values = {head}", "w += 0.1 * (float(sum(values)) / len(values) - w)", f"time.sleep({sleep})"]), *prog["end"]])]
    lines = assemble(rng, n, "run.py", imports + ["import time"] + prog["imports"], [*consts, ("COUNT", count), ("PERIODS", periods), ("STEPS", steps)], defs, body)
    source, tags = finish(lines)
    return source, tags, truth("cache", "none", "once", "run", 1, prog, {"framework": lib, "packages": pk}, fix="Not a leak: it is full after a while and stays so.", holder_kind=kind, units_total=periods, plateau_from_mark=fill // prog["every"] + 1,
                               plateau_from_share=(fill + 1) / periods)


def reserve(rng, framework, fixed):
    """A lot of memory once, near the start."""
    n = Names(rng)
    periods = rng.randint(14, 36)
    size = int(math.exp(rng.uniform(math.log(80e6), math.log(350e6))))
    kind = rng.choice(["buffer", "dataset", "slots", "late", "vocab"])
    prog = progress(rng, rng.choice(["epoch", "round", "sweep"]), "epoch", "PERIODS", "loss", silent_ok=True)
    steps = rng.randint(4, 12)
    imports, consts, defs, init, per_epoch, fw = ["import numpy as np", "import time"], [("PERIODS", periods), ("STEPS", steps)], [], [], [], "numpy"
    step = ["x = rng.standard_normal((128, 48))", "gap = x @ w - x[:, :1]", "w -= 0.01 * x.T @ gap / 128", "loss = float((gap ** 2).mean())"]
    cost = 3e-4
    if kind == "buffer":
        rows = size // (48 * 8)
        consts.append(("CAPACITY", rows))
        init = [f"ring = np.full((CAPACITY, 48), {rng.choice(['0.5', '1.0', '-1.0'])})  #@holder"]
        step.append("ring[(epoch * STEPS + i) % CAPACITY] = x[0]")
    elif kind == "dataset":
        rows = size // (48 * 8)
        consts.append(("ROWS", rows))
        defs.append(["def load(rng, rows):", "    table = np.empty((rows, 48))", "    for start in range(0, rows, 10000):", "        stop = min(rows, start + 10000)", "        table[start:stop] = rng.random((stop - start, 48))", "    return table"])
        init = ["table = load(rng, ROWS)  #@holder"]
        step[0] = "x = table[rng.integers(0, ROWS, 128)] - 0.5"
    elif kind == "slots":
        side = size // 3 // 8 // 2000
        defs.append(["class Adam:", "    def __init__(self, rate=1e-3):", "        self.rate, self.m, self.v, self.t = rate, None, None, 0", "", "    def apply(self, weights, rows, grad):", "        if self.m is None:",
                     "            self.m = np.full_like(weights, 0.0)  #@holder", "            self.v = np.full_like(weights, 1e-8)", "        self.t += 1", "        self.m[rows] = 0.9 * self.m[rows] + 0.1 * grad",
                     "        self.v[rows] = 0.99 * self.v[rows] + 0.01 * grad ** 2", "        weights[rows] -= self.rate * self.m[rows] / (np.sqrt(self.v[rows]) + 1e-8)"])
        consts.append(("VOCAB", 2000))
        init = [f"table = np.full((VOCAB, {side}), 0.01)", "adam = Adam()"]
        step = ["rows = rng.integers(0, VOCAB, 8)", "grad = table[rows] - 0.5", "adam.apply(table, rows, grad)", "loss = float((grad ** 2).mean())"]
        cost = side * 8 * 8e-9
    elif kind == "late":
        when = rng.choice([1, 2, 3])
        count = size // 8
        defs.append(["class Evaluator:", "    def __init__(self, size):", "        self.size = size", "        self.grid = None", "", "    def check(self, w):", "        if self.grid is None:", "            self.grid = np.linspace(0.0, 1.0, self.size)  #@holder",
                     "        return float(self.grid[::5000].mean() * abs(w).mean())"])
        init = [f"evaluator = Evaluator({count})"]
        per_epoch = [f"if epoch >= {when}:", "    score = evaluator.check(w)"]
    else:
        count = size // 190
        imports = ["import random", "import time"]
        fw = "python"
        defs.append(["def build_vocabulary(rng):", "    words = {}", "    for rank in range(WORDS):", "        words[\"w%d_%d\" % (rank, rng.randrange(1000))] = rank  #@holder", "    return words"])
        consts.append(("WORDS", count))
        init = ["vocabulary = build_vocabulary(rng)"]
        step = ["loss = 0.0", "for _ in range(500):", "    word = \"w%d_%d\" % (rng.randrange(WORDS), rng.randrange(1000))", "    loss += vocabulary.get(word, 0) / WORDS"]
        cost = 1e-3
    sleep = round(max(0.001, 3.6 / periods / steps - cost), 4)
    first = f"rng = np.random.default_rng({rng.randrange(99)})" if fw == "numpy" else f"rng = random.Random({rng.randrange(99)})"
    body = [first, *(["w = np.zeros((48, 1))"] if fw == "numpy" else []), *init, *prog["before"], "for epoch in range(PERIODS):", *indent(["for i in range(STEPS):", *indent([*step, f"time.sleep({sleep})"]), *per_epoch, *prog["end"]])]
    lines = assemble(rng, n, "run.py", imports + prog["imports"], consts, defs, body)
    source, tags = finish(lines)
    return source, tags, truth("reserve", "none", "once", "run", 1, prog, {"framework": fw, "packages": ["numpy"] if fw == "numpy" else []}, fix="Not a leak: it is taken once.", holder_kind=kind, units_total=periods, plateau_from_mark=max(5 // prog["every"], 2),
                               plateau_from_share=max(0.25, 5 / periods), also_accept=["flat"] if kind in ("buffer", "dataset", "vocab") else [])


def retention(rng, framework, fixed):
    """Many blocks below the mmap threshold are freed, but malloc keeps their pages: a few blocks above them live on."""
    n = Names(rng)
    periods = rng.randint(14, 30)
    width = rng.choice([6000, 9000, 12000, 16000])
    key = rng.choice([100, 150, 200])
    threads = rng.choice([0, 0, 2, 3])
    each = rng.random() < 0.5
    size = math.exp(rng.uniform(math.log(80e6), math.log(130e6 if each else 300e6)))
    if each:
        periods = rng.randint(14, 18)
    rows = int(size / (width * 4) / max(1, threads))
    load = rng.choice(["load_shard", "read_part", "parse_block", "load_rows"])
    prog = progress(rng, rng.choice(["epoch", "round"]), "epoch", "PERIODS", "loss", silent_ok=False)
    defs = [[f"def {load}(seed):", "    rng = np.random.default_rng(seed)", "    rows, heads = [], []", "    for _ in range(ROWS):", "        row = rng.random(WIDTH, dtype=np.float32)  #@holder", "        rows.append(row)",
             "        heads.append(row[:KEY].copy())", "    return rows, heads"],
            ["def step(w, heads, rate=0.05):", "    block = np.stack(heads[:256])", "    gap = block @ w - 1.0", "    return w - rate * block.T @ gap / len(block), float((gap ** 2).mean())"]]
    imports = ["import time", "import numpy as np"]
    get = [f"rows, heads = {load}({{seed}})"]
    start = []
    if threads:
        imports.append("from concurrent.futures import ThreadPoolExecutor")
        start = [f"pool = ThreadPoolExecutor(max_workers={threads})"]
        get = [f"parts = list(pool.map({load}, range({{seed}} * {threads}, {{seed}} * {threads} + {threads})))", "rows = [row for part, _ in parts for row in part]", "heads = [head for _, part in parts for head in part]"]
    use = ["level = float(np.mean([row.mean() for row in rows]))", "del rows" + (", parts" if threads else "")]
    train = [f"for _ in range({rng.randint(4, 9)}):", "    w, loss = step(w, heads)", f"    time.sleep({round(rng.uniform(0.012, 0.025), 4)})"]
    base = ["w = np.zeros(KEY, np.float32)", *start]
    if each:
        body = [*base, *prog["before"], "for epoch in range(PERIODS):", *indent([*[g.replace("{seed}", "epoch") for g in get], *use, *train, *prog["end"]])]
    else:
        body = [*base, *[g.replace("{seed}", str(rng.randrange(50))) for g in get], *use, 'print(f"mean {level:.3f}")', *prog["before"], "for epoch in range(PERIODS):", *indent([*train, *prog["end"]])]
    lines = assemble(rng, n, "run.py", imports + prog["imports"], [("ROWS", rows), ("WIDTH", width), ("KEY", key), ("PERIODS", periods)], defs, body)
    source, tags = finish(lines)
    return source, tags, truth("retention", "C25", "once", "run", 1, prog, {"framework": "numpy", "packages": ["numpy"]}, fix="Not a leak: malloc keeps the freed rows; malloc_trim(0) returns them. Load a part as one array.",
                               holder_kind=f"{threads} threads, {'each epoch' if each else 'at the start'}", units_total=periods)


def fragmentation(rng, framework, fixed):
    """A few survivors are scattered over the pages of many small blocks."""
    n = Names(rng)
    periods = rng.randint(14, 30)
    kind = rng.choice(["objects", "tuples", "lines", "vectors"])
    prog = progress(rng, rng.choice(["epoch", "round"]), "epoch", "PERIODS", "loss", silent_ok=False)
    read, pick = rng.choice(["parse_log", "read_events", "scan"]), rng.choice(["sample_of", "choose", "thin_out"])
    imports, fw, pk = ["import random", "import time"], "python", []
    if kind == "objects":
        count, keep = rng.randint(350000, 700000), rng.randint(30, 60)
        cls = n["Thing"]
        defs = [[f"class {cls}:", '    __slots__ = ("user", "page", "weight")', "", "    def __init__(self, user, page, weight):", "        self.user = user", "        self.page = page", "        self.weight = weight"],
                [f"def {read}(rng):", "    for k in range(COUNT):", f"        yield {cls}(\"u%d\" % rng.randrange(10 ** 6), \"/page/%d\" % k, rng.random())"]]
        value = "e.weight"
    elif kind == "tuples":
        count, keep = rng.randint(400000, 800000), rng.randint(20, 40)
        defs = [[f"def {read}(rng):", "    for k in range(COUNT):", "        yield (rng.random(), k * 3, \"t%d\" % rng.randrange(10 ** 6))"]]
        value = "e[0]"
    elif kind == "lines":
        count, keep = rng.randint(120000, 300000), rng.randint(4, 5)
        defs = [[f"def {read}(rng):", "    for k in range(COUNT):", f"        yield (\"%d,%.4f;\" % (k, rng.random())) * {rng.randint(42, 55)}"]]
        value = "len(e) / 800"
    else:
        imports, fw, pk = ["import time", "import numpy as np"], "numpy", ["numpy"]
        count, keep = rng.randint(80000, 180000), rng.randint(3, 4)
        defs = [[f"def {read}(rng):", "    for k in range(COUNT):", f"        yield rng.random({rng.randint(140, 160)})"]]
        value = "float(e[0])"
    defs += [[f"def {pick}(rng):", f"    everything = list({read}(rng))  #@holder", f"    return everything[::{keep}]"]]
    first = f"rng = random.Random({rng.randrange(99)})" if fw == "python" else f"rng = np.random.default_rng({rng.randrange(99)})"
    body = [first, f"chosen = {pick}(rng)", 'print(len(chosen), "chosen")', "w = 0.0", *prog["before"], "for epoch in range(PERIODS):",
            *indent(["loss = 0.0", "for e in chosen[:4000]:", f"    gap = {value} - w", "    w += 0.001 * gap", "    loss += gap * gap", f"time.sleep({round(rng.uniform(0.1, 0.16), 3)})", *prog["end"]])]
    lines = assemble(rng, n, "run.py", imports + prog["imports"], [("COUNT", count), ("PERIODS", periods)], defs, body)
    source, tags = finish(lines)
    return source, tags, truth("fragmentation", "none", "once", "run", 1, prog, {"framework": fw, "packages": pk}, fix="Not a leak: choose while reading; the survivors hold the pages of all.", also_accept=["retention"], holder_kind=kind, units_total=periods)


def torch_reserve(rng, framework, fixed):
    """C35: Adam's slots and the gradients appear at the first step."""
    n = Names(rng)
    periods, side = rng.randint(14, 18), rng.choice([1400, 1700, 2000])
    prog = progress(rng, "epoch", "epoch", "PERIODS", "loss", silent_ok=True)
    body = [f"torch.manual_seed({rng.randrange(99)})", "x, y = torch.randn(64, SIDE), torch.randn(64, 1)", "model = nn.Sequential(nn.Linear(SIDE, SIDE), nn.Tanh(), nn.Linear(SIDE, SIDE), nn.Tanh(), nn.Linear(SIDE, 1))",
            f"optimizer = torch.optim.{rng.choice(['Adam', 'AdamW'])}(model.parameters(), lr=1e-4)", *prog["before"], "for epoch in range(PERIODS):",
            *indent(["loss = ((model(x) - y) ** 2).mean()", "optimizer.zero_grad()", "loss.backward()", "optimizer.step()  #@holder", "loss = loss.item()", "time.sleep(0.05)", *prog["end"]])]
    lines = assemble(rng, n, "run.py", ["import time", "import torch", "from torch import nn", *prog["imports"]], [("PERIODS", periods), ("SIDE", side)], [], body)
    source, tags = finish(lines)
    return source, tags, truth("reserve", "C35", "once", "run", 1, prog, {"framework": "torch", "packages": ["torch"]}, fix="Not a leak: gradients and slots appear at the first step.", holder_kind="slots", units_total=periods, plateau_from_mark=3,
                               plateau_from_share=0.3, also_accept=["flat"])


def keras_cache(rng, framework, fixed):
    """C19: tf.data cache() keeps the decoded set after the first epoch."""
    n = Names(rng)
    periods, side = rng.randint(12, 16), rng.choice([48, 64])
    count = int(math.exp(rng.uniform(math.log(80e6), math.log(250e6))) / (side * side * 4))
    defs = [["def decode(index):", f"    image = tf.random.stateless_uniform((SIDE, SIDE, 1), seed=[{rng.randrange(9)}, index])", "    return image, tf.reduce_mean(image)"]]
    body = ["data = tf.data.Dataset.range(COUNT).map(decode).cache().batch(256).prefetch(2)  #@holder", f"model = keras.Sequential([keras.Input((SIDE, SIDE, 1)), keras.layers.AveragePooling2D({side // 8}), keras.layers.Flatten(), keras.layers.Dense(1)])",
            "model.compile(optimizer=\"sgd\", loss=\"mse\")", "model.fit(data, epochs=EPOCHS, verbose=2)"]
    lines = assemble(rng, n, "run.py", ["import keras", "import tensorflow as tf"], [("COUNT", count), ("SIDE", side), ("EPOCHS", periods)], defs, body)
    source, tags = finish(lines)
    return source, tags, truth("cache", "C19", "once", "run", 1, {"mark": r"^Epoch \d+/"}, {"framework": "tensorflow/keras", "packages": ["tensorflow", "keras", "numpy"]}, fix="Not a leak: cache() holds the decoded set.", holder_kind="tf.data cache",
                               units_total=periods, plateau_from_mark=2, also_accept=["reserve"])
