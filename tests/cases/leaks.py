"""Programs that leak, each with its twin (fixed=True) that does not."""
import math
import random

from layout import assemble, busy_seconds, finish, loop_layout, pace, sizes, truth
from names import Names, indent, progress
from parts import HOLDERS, WORK, make_holder


def loop_leak(rng, framework, fixed):
    """A loop that keeps something in a holder; fixed: the same loop that does not."""
    n = Names(rng)
    while True:
        rhythm, every, periods, per_period, payload = sizes(rng, framework, framework == "python")
        if payload * (periods // every if rhythm in ("epoch", "kth") else periods * per_period) <= 800e6:
            break
    work = WORK[framework](rng, n, payload)
    if rhythm in ("epoch", "kth"):
        per_period = max(1, min(per_period, int(4.0 / periods / busy_seconds(work))))
    word = rng.choice(["epoch", "epoch", "epoch", "round", "iteration", "pass", "sweep", "cycle"])
    var = {"epoch": "epoch", "round": "round_", "iteration": "it", "pass": "p_", "sweep": "sweep_", "cycle": "cycle"}[word]
    at_step = rhythm in ("batch", "call")
    key = rng.choice([f"({var}, {work['i']})", f"{var} * STEPS + {work['i']}"]) if at_step else var
    wrap = rng.choice(work["wraps"])
    how = rng.choice(["scalar", "bounded"])
    numpy_like = framework == "numpy"
    while True:
        kind = rng.choice(HOLDERS)
        if kind in ("concat",) and at_step:
            continue
        if kind == "setattr":
            key = f"{var} * STEPS + {work['i']}" if at_step else var
        if kind == "log_handler" and wrap in ("obj",):
            continue
        inner_rng = random.Random(rng.randrange(1 << 30))
        holder = make_holder(inner_rng, n, kind, work["value"], work["scalar"], key, wrap, fixed, how, numpy_like, payload)
        if holder:
            break
    exact = work["bytes"]
    if kind in ("bytearray", "concat", "bytesio", "native"):
        wrap = "bare"
    if wrap in ("tolist", "aslist", "dict", "obj", "tuple"):
        exact = None if wrap in ("tolist", "aslist") or payload < 50e3 else exact
    if "bytes" in holder:
        exact = holder["bytes"]
    seconds = rng.uniform(3, 5)
    pause = pace(rng, work, periods, per_period, seconds)
    lines, prog = loop_layout(rng, n, work, holder, periods, per_period, pause, rhythm, every, word, silent_ok=exact is not None)
    source, tags = finish(lines)
    unit = {"batch": "batch", "call": "call"}.get(rhythm, "epoch")
    per_mark = (per_period if at_step else 1) * prog["every"]
    name = {"batch": "per batch", "call": "per call", "epoch": "per epoch", "kth": f"per {every}. epoch"}[rhythm]
    t = truth("leak", holder.get("cause", "C14"), name, unit, per_mark, prog, work, fix=holder["fix"], holder_kind=kind, kept=wrap, units_total=periods * per_mark // prog["every"], units_per_call=every)
    if exact:
        t["bytes_by_construction"] = exact / every
    return source, tags, t


def model_leak(rng, framework, fixed):
    """A new model object each round, all of them kept."""
    n = Names(rng)
    periods = rng.randint(14, 34)
    payload = int(min(8e6, math.exp(rng.uniform(math.log(70e6), math.log(350e6))) / periods))
    width = rng.choice([100, 160, 256, 400])
    cols = max(20, payload // (width * 8))
    word = rng.choice(["fold", "trial", "candidate", "model", "member"])
    cls, var = n["Model"], rng.choice(["fold", "k", "trial", "c"])
    kept = n["list"]
    steps = rng.randint(3, 8)
    method = rng.choice(["fit", "train", "learn"])
    keep = rng.choice([f"{kept}.append(model)", f"{kept}.append((score, model))", f"{kept}.append({{\"{var}\": {var}, \"model\": model}})"])
    fix = rng.choice([[f"{kept}.append(score)"], [f"if not {kept} or score < min({kept}):", "    best = model", f"{kept}.append(score)"]])
    keep_lines = fix if fixed else [keep + "  #@keep"]
    prog = progress(rng, word, var, "PERIODS", "score", silent_ok=True)
    prog_every = prog["every"]
    defs = [[f"class {cls}:", "    def __init__(self, rng, rate):", "        self.rate = rate", "        self.weights = rng.standard_normal((WIDTH, COLS)) * 0.01", "", f"    def {method}(self, x, y, steps):",
             "        for _ in range(steps):", "            error = x @ self.weights - y", "            self.weights -= self.rate * x.T @ error / len(x)", "            time.sleep(0.01)", "        return float((error ** 2).mean())"]]
    body = [f"rng = np.random.default_rng({rng.randrange(99)})", "x = rng.standard_normal((64, WIDTH))", "y = rng.standard_normal((64, COLS))", f"{kept} = []", *prog["before"], f"for {var} in range(PERIODS):",
            *indent([f"model = {cls}(rng, 10 ** rng.uniform(-3, -1))  #@made", f"score = model.{method}(x, y, {steps})", *keep_lines, f"time.sleep({round(max(0.02, 3.5 / periods - 0.01 * steps), 3)})", *prog["end"]]),
            f'print("tried", len({kept}))']
    lines = assemble(rng, n, "run.py", ["import numpy as np", "import time", *prog["imports"]], [("WIDTH", width), ("COLS", cols), ("PERIODS", periods)], defs, body)
    source, tags = finish(lines)
    work = {"framework": "numpy", "packages": ["numpy"]}
    t = truth("leak", "C14", "per model", "model", prog_every, prog, work, fix="Keep the score, or the best model only.", holder_kind="list", kept="object", bytes_by_construction=width * cols * 8, units_total=periods)
    return source, tags, t


def lru_leak(rng, framework, fixed):
    """A memo without a limit (or with a small one), asked for a new key each time."""
    n = Names(rng)
    rhythm, every, periods, per_period, payload = sizes(rng, framework)
    every = 1
    units = periods * per_period
    payload = int(min(max(payload, 20e3), 400e6 / units))
    if payload * units < 60e6:
        payload = int(60e6 / units)
    numpy = framework == "numpy"
    fn, loss = rng.choice(["basis_for", "decode", "load_window", "features_of", "render", "tokenize", "simulate"]), "loss"
    how = rng.choice(["maxsize", "key", "none"])
    deco = rng.choice(["@functools.lru_cache(maxsize=None)", "@functools.cache", "@functools.lru_cache(None)"])
    if fixed and how == "maxsize":
        deco = "@functools.lru_cache(maxsize=2)"
    deco_lines = [] if fixed and how == "none" else [deco + ("" if fixed else "  #@keep")]
    key = f"epoch * STEPS + i" if not (fixed and how == "key") else "i % 2"
    sleep = round(max(0.0005, 4.0 / units - payload * 1.2e-9), 4)
    also = "" if fixed else "  #@also"
    if numpy:
        imports = ["import functools", "import time", "import numpy as np"]
        count = payload // 8
        defs = [[*deco_lines, f"def {fn}(key):{also}", "    rng = np.random.default_rng(key)", f"    return np.sin(rng.random(COUNT) * key){also}"]]
        consts = [("COUNT", count)]
        step = [f"x = {fn}({key}){also}", "w += 0.1 * (float(x[:100].mean()) - w)"]
        exact, pk = count * 8, ["numpy"]
    else:
        count = max(20, payload // 95)
        imports = ["import functools", "import random", "import time"]
        defs = [[*deco_lines, f"def {fn}(key):{also}", "    rng = random.Random(key)", f'    return tuple("item-%d-%d" % (key, rng.randrange(10 ** 6)) for _ in range(COUNT)){also}']]
        consts = [("COUNT", count)]
        step = [f"x = {fn}({key}){also}", "w += 0.1 * (len(x[0]) / 20 - w)"]
        exact, pk = None, []
    prog = progress(rng, rng.choice(["epoch", "round", "pass"]), "epoch", "PERIODS", "w", silent_ok=exact is not None)
    body = ["w = 0.0", *prog["before"], "for epoch in range(PERIODS):", *indent(["for i in range(STEPS):", *indent([*step, f"time.sleep({sleep})"]), *prog["end"]])]
    lines = assemble(rng, n, "run.py", imports + prog["imports"], consts + [("PERIODS", periods), ("STEPS", per_period)], defs, body)
    source, tags = finish(lines)
    t = truth("leak", "C14", "per call", "call", per_period * prog["every"], prog, {"framework": framework, "packages": pk}, fix="Give lru_cache a maxsize, or do not cache what is asked for once.", holder_kind="lru_cache", kept="bare",
              units_total=units)
    if exact:
        t["bytes_by_construction"] = exact
    return source, tags, t


def generator_leak(rng, framework, fixed):
    """A generator that remembers every batch it gave out."""
    n = Names(rng)
    rhythm, every, periods, per_period, payload = sizes(rng, framework)
    units = periods * per_period
    payload = int(max(60e6 / units, min(payload, 400e6 / units)))
    gen, seen, x = rng.choice(["batches", "stream", "windows", "sampler", "feed"]), n["list"], n["x"]
    cols = rng.choice([32, 64, 128])
    rows = max(4, payload // (cols * 8))
    fix = rng.choice([[f"{seen} = [{x}]"], [f"{seen}.append(len({x}))"]])
    keep = fix if fixed else [f"{seen}.append({x})  #@keep"]
    prog = progress(rng, rng.choice(["epoch", "round", "cycle"]), "epoch", "PERIODS", "loss", silent_ok=True)
    sleep = round(max(0.0005, 4.0 / units - payload * 3e-9), 4)
    defs = [[f"def {gen}(seed):", f"    rng = np.random.default_rng(seed)", f"    {seen} = []", "    while True:", f"        {x} = rng.standard_normal((ROWS, COLS))  #@made", *indent(keep, 2),
             *([f"        if len({seen}) % 1000 == 0:", f'            print("served", len({seen}))'] if rng.random() < 0.3 else []), f"        yield {x}"],
            ["def step(w, x, rate=0.01):", "    gap = x @ w - x[:, :1]", "    return w - rate * x.T @ gap / len(x), float((gap ** 2).mean())"]]
    body = ["w = np.zeros((COLS, 1))", f"source = {gen}({rng.randrange(50)})", *prog["before"], "for epoch in range(PERIODS):",
            *indent(["for _ in range(STEPS):", *indent(["w, loss = step(w, next(source))", f"time.sleep({sleep})"]), *prog["end"]])]
    lines = assemble(rng, n, "run.py", ["import time", "import numpy as np", *prog["imports"]], [("ROWS", rows), ("COLS", cols), ("PERIODS", periods), ("STEPS", per_period)], defs, body)
    source, tags = finish(lines)
    return source, tags, truth("leak", "C14", "per batch", "batch", per_period * prog["every"], prog, {"framework": "numpy", "packages": ["numpy"]}, fix="The generator need not remember what it gave out.",
                               holder_kind="generator", kept="bare", bytes_by_construction=rows * cols * 8, units_total=units)


# --------------------------------------------------------------------------------------------------- frameworks' own ways

def torch_graph(rng, framework, fixed):
    """C36: what is kept has a grad_fn, and with it the activations of a pass."""
    n = Names(rng)
    periods = rng.randint(14, 24)
    hidden, rows, width = rng.choice([128, 256, 384, 512]), 0, rng.choice([16, 32, 64])
    target = math.exp(rng.uniform(math.log(80e6), math.log(220e6))) / periods
    rows = max(64, int(target / (hidden * 4 * 2.6)))
    style = rng.choice(["losses", "total", "outputs", "logprob"])
    kept, obj, cls = n["list"], n["obj"], n["Class"]
    act = rng.choice(["nn.Tanh()", "nn.ReLU()", "nn.Sigmoid()"])
    with_class = rng.random() < 0.4 and style != "total"
    prog = progress(rng, rng.choice(["epoch", "round"]), "epoch", "PERIODS", "shown", silent_ok=False)
    value = {"losses": "criterion(model(x_val), y_val)", "outputs": "model(x_val)", "logprob": "torch.log_softmax(model(x_val), dim=1).mean()", "total": "criterion(model(x_val), y_val)"}[style]
    item = ".mean().item()" if style == "outputs" else ".item()"
    check = rng.choice(["validate", "check_heldout", "evaluate"])
    defs = [["def build():", f"    return nn.Sequential(nn.Linear(WIDTH, HIDDEN), {act}, nn.Linear(HIDDEN, HIDDEN), {act}, nn.Linear(HIDDEN, 4))"],
            ["def train_some(model, optimizer, criterion, x, y):", "    for start in range(0, len(x), 64):", "        loss = criterion(model(x[start:start + 64]), y[start:start + 64])", "        optimizer.zero_grad()",
             "        loss.backward()", "        optimizer.step()", f"        time.sleep({round(rng.uniform(0.004, 0.01), 4)})"]]
    at = f"{kept}"
    if with_class:
        defs.append([f"class {cls}:", "    def __init__(self):", f"        self.{kept} = []", "", "    def add(self, value):", f"        self.{kept}.append(value" + (f"{item})" if fixed else ")  #@keep"), f"        return len(self.{kept})"])
        init, keep = [f"{obj} = {cls}()"], [f"{obj}.add(result)"]
        made = ""
    elif style == "total":
        init, keep = ["running = 0.0"], ["running = running + result.item()" if fixed else "running = running + result  #@keep"]
        made = "  #@made"
    else:
        init, keep = [f"{at} = []"], [f"{at}.append(result{item})" if fixed else f"{at}.append(result)  #@keep"]
        made = "  #@made"
    eval_lines = ["model.eval()"] if rng.random() < 0.5 else []
    body = [f"torch.manual_seed({rng.randrange(90)})", "x, y = torch.randn(640, WIDTH), torch.randn(640, 4)", "x_val, y_val = torch.randn(ROWS, WIDTH), torch.randn(ROWS, 4)", "model = build()", "criterion = nn.MSELoss()",
            f"optimizer = torch.optim.{rng.choice(['Adam', 'SGD'])}(model.parameters(), lr=1e-3)", *init, *prog["before"], "for epoch in range(PERIODS):",
            *indent(["train_some(model, optimizer, criterion, x, y)", *eval_lines, f"result = {value}{made}", *keep, "shown = float(result.detach().mean())", *prog["end"]])]
    if style == "total":
        body += ['print("mean", float(running) / PERIODS)']
    lines = assemble(rng, n, "run.py", ["import torch", "import time", "from torch import nn", *prog["imports"]], [("WIDTH", width), ("HIDDEN", hidden), ("ROWS", rows), ("PERIODS", periods)], defs, body)
    source, tags = finish(lines)
    return source, tags, truth("leak", "C36", "per epoch", "epoch", prog["every"], prog, {"framework": "torch", "packages": ["torch"]}, fix="Evaluate under torch.no_grad() and keep .item(): the tensor keeps the graph of the whole pass.",
                               holder_kind="accumulator" if style == "total" else "list", kept="tensor with grad_fn", units_total=periods)


def keras_model(rng, width, outs, loss="mse"):
    layers = [f"keras.layers.Dense({rng.choice([16, 32, 48, 64])}, activation=\"{rng.choice(['relu', 'tanh', 'gelu'])}\")" for _ in range(rng.randint(1, 2))]
    return ["def build_model():", "    model = keras.Sequential([", f"        keras.Input(({width},)),", *[f"        {layer}," for layer in layers], f"        keras.layers.Dense({outs}),", "    ])",
            f"    model.compile(optimizer=\"{rng.choice(['adam', 'sgd', 'rmsprop'])}\", loss=\"{loss}\")", "    return model"]


def keras_fit(rng, framework, fixed):
    """fit() with a callback or a PyDataset that keeps arrays (C14)."""
    n = Names(rng)
    periods = rng.randint(12, 18)
    style = rng.choice(["callback", "callback", "weights", "pydataset", "lambda", "subclass"])
    verbose = 2 if style in ("pydataset", "subclass") else rng.choice([0, 2])
    width, outs = rng.choice([16, 24, 40]), rng.choice([4, 8, 32])
    target = math.exp(rng.uniform(math.log(80e6), math.log(220e6))) / periods
    cls, attr = n["Class"], n["list"]
    imports, defs = ["import keras", "import numpy as np"], []
    consts = [("EPOCHS", periods)]
    per_mark, unit, exact = 1, "epoch", None
    fit_x, extra, cbs = "x, y, batch_size=32, ", [], f"callbacks=[{cls}()], "
    data = [f"rng = np.random.default_rng({rng.randrange(99)})", f"x = rng.random((512, {width}), dtype=np.float32)", f"y = rng.random((512, {outs}), dtype=np.float32)"]
    show = ["print(f\"epoch {epoch}: {logs['loss']:.4f}\")"] if verbose == 0 else []
    mark = r"^Epoch \d+/" if verbose == 2 else r"^epoch \d+"
    if style == "callback":
        rows = int(target / (outs * 4))
        pred = rng.choice(["self.model.predict(self.probe, verbose=0)", "self.model.predict(self.probe, batch_size=512, verbose=0)"]) if rows < 60000 else "self.model.predict(self.probe, batch_size=4096, verbose=0)"
        keep = f"self.{attr}.append(float(pred.mean()))" if fixed else rng.choice([f"self.{attr}.append(pred)", f"self.{attr}.append((epoch, pred))"]) + "  #@keep"
        defs.append([f"class {cls}(keras.callbacks.Callback):", "    def __init__(self, probe):", "        super().__init__()", "        self.probe = probe", f"        self.{attr} = []", "", "    def on_epoch_end(self, epoch, logs=None):",
                     f"        pred = {pred}  #@made", f"        {keep}", *indent(show, 2)])
        data.append(f"x_probe = rng.random(({rows}, {width}), dtype=np.float32)")
        cbs, exact = f"callbacks=[{cls}(x_probe)], ", rows * outs * 4
    elif style == "weights":
        outs = max(64, int(target / 4 / 256))
        data[2] = f"y = rng.random((512, {outs}), dtype=np.float32)"
        keep = f"self.{attr}[epoch] = float(np.abs(weights[0]).mean())" if fixed else f"self.{attr}[epoch] = weights  #@keep"
        defs.append([f"class {cls}(keras.callbacks.Callback):", "    def __init__(self):", "        super().__init__()", f"        self.{attr} = {{}}", "", "    def on_epoch_end(self, epoch, logs=None):",
                     "        weights = self.model.get_weights()  #@made", f"        {keep}", *indent(show, 2)])
    elif style == "lambda":
        rows = int(target / (outs * 4))
        keep = f"{attr}.append(float(pred.mean()))" if fixed else f"{attr}.append(pred)  #@keep"
        extra = [f"{attr} = []", "", "def after_epoch(epoch, logs):", "    pred = model.predict(x_probe, batch_size=2048, verbose=0)  #@made", f"    {keep}", *indent(show), ""]
        data.append(f"x_probe = rng.random(({rows}, {width}), dtype=np.float32)")
        cbs, exact = "callbacks=[keras.callbacks.LambdaCallback(on_epoch_end=after_epoch)], ", rows * outs * 4
    elif style == "pydataset":
        steps = rng.randint(6, 16)
        batch = max(16, int(target / steps / (width + outs) / 4))
        keep = f"self.{attr} = (x, y)" if fixed else f"self.{attr}.append((x, y))  #@keep"
        defs.append([f"class {cls}(keras.utils.PyDataset):", "    def __init__(self):", "        super().__init__()", f"        self.rng = np.random.default_rng({rng.randrange(99)})", f"        self.{attr} = []", "",
                     "    def __len__(self):", f"        return {steps}", "", "    def __getitem__(self, index):", f"        x = self.rng.random((BATCH, {width}), dtype=np.float32)  #@made",
                     f"        y = self.rng.random((BATCH, {outs}), dtype=np.float32)", f"        {keep}", "        return x, y"])
        consts.append(("BATCH", batch))
        data, fit_x, cbs, per_mark, unit, exact = [], f"{cls}(), ", "", steps, "batch", batch * (width + outs) * 4
    else:  # a model whose train_step keeps its batches
        steps = 8
        batch = max(32, int(target / steps / width / 4))
        keep = f"self.{attr}.append(len(batch))" if fixed else f"self.{attr}.append(batch)  #@keep"
        defs.append([f"class {cls}(keras.callbacks.Callback):", "    def __init__(self, x):", "        super().__init__()", "        self.x = x", f"        self.{attr} = []", "", "    def on_train_batch_end(self, batch_index, logs=None):",
                     "        batch = self.x[np.random.permutation(len(self.x))]  #@made", f"        {keep}"])
        data[1] = f"x = rng.random((512, {width}), dtype=np.float32)"
        data.append(f"x_ref = rng.random(({batch}, {width}), dtype=np.float32)")
        fit_x, cbs, per_mark, unit, exact = "x, y, batch_size=64, ", f"callbacks=[{cls}(x_ref)], ", steps, "batch", batch * width * 4
    model = keras_model(rng, width, outs)
    if style == "weights":
        model = [line.replace(f"Dense({outs})", f"Dense({outs})") for line in model]
        model.insert(model.index(f"        keras.layers.Dense({outs}),"), "        keras.layers.Dense(256),")
    body = [*data, "model = build_model()", *extra, f"model.fit({fit_x}epochs=EPOCHS, {cbs}verbose={verbose})"]
    lines = assemble(rng, n, "run.py", imports, consts, [model, *defs], body)
    source, tags = finish(lines)
    t = truth("leak", "C14", f"per {unit}", unit, per_mark, {"mark": mark}, {"framework": "tensorflow/keras", "packages": ["tensorflow", "keras", "numpy"]}, fix="Keep a number for each epoch, not the arrays.", holder_kind=style,
              kept="array", units_total=periods * per_mark)
    if exact:
        t["bytes_by_construction"] = exact
    return source, tags, t


def tf_retrace(rng, framework, fixed):
    """C1: a Python number as an argument of a tf.function makes a trace for each value."""
    n = Names(rng)
    periods, steps = rng.randint(12, 14), rng.randint(4, 5)
    layers = rng.randint(5, 7)
    width = rng.choice([16, 32])
    fn, arg = rng.choice(["train_step", "update", "apply_batch"]), rng.choice(["step", "scale", "temperature", "t"])
    expr = {"step": "epoch * STEPS + i", "scale": "1.0 / (1 + epoch * STEPS + i)", "temperature": "1.0 + 0.01 * (epoch * STEPS + i)", "t": "epoch * STEPS + i"}[arg]
    passed = f"tf.constant({expr}, tf.float32)" if fixed else expr
    prog = progress(rng, "epoch", "epoch", "PERIODS", "loss", silent_ok=False)
    defs = [["def build():", f"    parts = [keras.layers.Dense({width}, activation=\"tanh\") for _ in range({layers})]", f"    return keras.Sequential([keras.Input(({width},)), *parts, keras.layers.Dense(1)])"],
            ["model = build()", "optimizer = keras.optimizers.SGD(1e-3)", "optimizer.build(model.trainable_variables)"],
            ["@tf.function", f"def {fn}(x, y, {arg}):" + ("" if fixed else "  #@also"), "    with tf.GradientTape() as tape:", "        gap = model(x, training=True) - y", f"        loss = tf.reduce_mean(gap ** 2) / (1.0 + {arg})",
             "    grads = tape.gradient(loss, model.trainable_variables)", "    optimizer.apply_gradients(zip(grads, model.trainable_variables))", "    return loss"]]
    body = [f"rng = np.random.default_rng({rng.randrange(99)})", *prog["before"], "for epoch in range(PERIODS):",
            *indent(["for i in range(STEPS):", *indent([f"x = tf.constant(rng.random((32, {width}), dtype=np.float32))", f"loss = float({fn}(x, x[:, :1], {passed}))" + ("" if fixed else "  #@keep"), *(["time.sleep(0.02)"] if fixed else ["time.sleep(0.001)"])]), *prog["end"]])]
    lines = assemble(rng, n, "run.py", ["import time", "import keras", "import numpy as np", "import tensorflow as tf", *prog["imports"]], [("PERIODS", periods), ("STEPS", steps)], defs, body)
    source, tags = finish(lines)
    return source, tags, truth("leak", "C1", "per call", "call", steps * prog["every"], prog, {"framework": "tensorflow", "packages": ["tensorflow", "keras", "numpy"]}, fix="Pass a tensor: each Python number makes a new trace.",
                               holder_kind="tf.function", kept="traces", units_total=periods * steps)


def keras_models(rng, framework, fixed):
    """C5: a model for each fold. The fix reuses one model and resets its weights."""
    n = Names(rng)
    periods = rng.randint(12, 14)
    width, hidden = rng.choice([64, 100]), rng.choice([400, 600])
    word, var = rng.choice([("fold", "fold"), ("trial", "trial"), ("client", "client")])
    kept = n["list"]
    hold = rng.random() < 0.5
    defs = [["def build_model():", f"    model = keras.Sequential([keras.Input(({width},)), keras.layers.Dense({hidden}, activation=\"relu\"), keras.layers.Dense({hidden}, activation=\"relu\"), keras.layers.Dense(1)])",
             f"    model.compile(optimizer=\"{rng.choice(['adam', 'rmsprop'])}\", loss=\"mse\")", "    return model"]]
    prog = progress(rng, word, var, "PERIODS", "loss", silent_ok=False)
    if fixed:
        start, inside = ["model = build_model()", "first = model.get_weights()"], ["model.set_weights(first)"]
        keep = [f"{kept}.append(loss)"]
    else:
        start, inside = [], ["model = build_model()" + ("  #@also" if hold else "  #@keep")]
        keep = [f"{kept}.append(model)  #@keep"] if hold else [f"{kept}.append(loss)"]
    body = [f"rng = np.random.default_rng({rng.randrange(99)})", f"x = rng.random((256, {width}), dtype=np.float32)", "y = x.sum(axis=1, keepdims=True)", *start, f"{kept} = []", *prog["before"], f"for {var} in range(PERIODS):",
            *indent([*inside, "loss = model.fit(x, y, epochs=1, batch_size=64, verbose=0).history[\"loss\"][-1]", *keep, *prog["end"]])]
    lines = assemble(rng, n, "run.py", ["import keras", "import numpy as np", *prog["imports"]], [("PERIODS", periods)], defs, body)
    source, tags = finish(lines)
    return source, tags, truth("leak", "C5", "per model", "model", prog["every"], prog, {"framework": "tensorflow/keras", "packages": ["tensorflow", "keras", "numpy"]},
                               fix="Build one model and reset its weights, or run each in a process of its own.", holder_kind="models", kept="models", units_total=periods)


def keras_compile(rng, framework, fixed):
    """C8: compile() for each stage. The fix sets the learning rate."""
    n = Names(rng)
    periods = rng.randint(12, 15)
    layers, width = rng.randint(5, 8), rng.choice([64, 96])
    prog = progress(rng, rng.choice(["stage", "round"]), "stage", "PERIODS", "loss", silent_ok=False)
    rate = rng.choice(["0.01 * 0.9 ** stage", "1e-2 / (1 + stage)"])
    inside = [f"model.optimizer.learning_rate = {rate}"] if fixed else [f"model.compile(optimizer=keras.optimizers.Adam({rate}), loss=\"mse\")  #@keep"]
    body = [f"rng = np.random.default_rng({rng.randrange(99)})", f"x = rng.random((256, {width}), dtype=np.float32)", "y = x.mean(axis=1, keepdims=True)", f"model = keras.Sequential([keras.Input(({width},))])", f"for _ in range({layers}):",
            "    model.add(keras.layers.Dense(WIDTH, activation=\"relu\"))", "model.add(keras.layers.Dense(1))", *(["model.compile(optimizer=\"adam\", loss=\"mse\")"] if fixed else []), *prog["before"], "for stage in range(PERIODS):",
            *indent([*inside, "loss = model.fit(x, y, batch_size=32, epochs=1, verbose=0).history[\"loss\"][0]" + ("" if fixed else "  #@made"), *(["time.sleep(0.1)"] if fixed else []), *prog["end"]])]
    lines = assemble(rng, n, "run.py", ["import keras", "import numpy as np", *(["import time"] if fixed else []), *prog["imports"]], [("PERIODS", periods), ("WIDTH", rng.choice([256, 320]))], [], body)
    source, tags = finish(lines)
    return source, tags, truth("leak", "C8", "per epoch", "epoch", prog["every"], prog, {"framework": "tensorflow/keras", "packages": ["tensorflow", "keras", "numpy"]}, fix="Compile once and set optimizer.learning_rate.",
                               holder_kind="compile", kept="train functions", units_total=periods)


def figures(rng, framework, fixed):
    """C16: pyplot keeps each figure that is not closed."""
    n = Names(rng)
    periods = rng.randint(14, 24)
    size = rng.choice([(8, 5), (10, 6), (12, 4)])
    prog = progress(rng, "epoch", "epoch", "PERIODS", "loss", silent_ok=False)
    fn = rng.choice(["plot_curves", "draw_weights", "save_figure", "plot_fit"])
    out = rng.choice(["fig.canvas.draw()", "fig.savefig(io.BytesIO(), format=\"png\")"])
    make = rng.choice([f"fig, ax = plt.subplots(figsize={size})", f"fig = plt.figure(figsize={size})"])
    ax = ["ax = fig.add_subplot(111)"] if "subplots" not in make else []
    draw = ["ax.plot(w)", "ax.imshow(np.outer(w, w)[:200, :200], aspect=\"auto\")", "ax.set_title(f\"epoch {epoch}\")", out]
    if fixed:  # one figure, drawn again: a closed figure is a cycle that waits for the collector
        defs = [[make, *ax], [f"def {fn}(w, epoch):", "    ax.clear()", *indent(draw)]]
    else:
        defs = [[f"def {fn}(w, epoch):", f"    {make}  #@keep", *indent(ax), *indent(draw)]]
    body = [f"rng = np.random.default_rng({rng.randrange(99)})", f"x = rng.standard_normal((400, {rng.choice([300, 500])}))", "y = x[:, 0] + 0.1 * rng.standard_normal(400)", "w = np.zeros(x.shape[1])", *prog["before"], "for epoch in range(PERIODS):",
            *indent([f"for _ in range(20):", "    gap = x @ w - y", "    w -= 0.01 * x.T @ gap / len(x)", "loss = float((gap ** 2).mean())", f"{fn}(w, epoch)" + ("" if fixed else "  #@also"), *prog["end"]])]
    lines = assemble(rng, n, "run.py", ["import io", "import matplotlib.pyplot as plt", "import numpy as np", *prog["imports"]] if "io." in out else ["import matplotlib.pyplot as plt", "import numpy as np", *prog["imports"]],
                     [("PERIODS", periods)], defs, body)
    source, tags = finish(lines)
    return source, tags, truth("leak", "C16", "per epoch", "epoch", prog["every"], prog, {"framework": "numpy", "packages": ["numpy", "matplotlib"]}, fix="plt.close(fig) after drawing, or draw in one figure.", holder_kind="pyplot", kept="figures", units_total=periods)


def jax_shapes(rng, framework, fixed):
    """C42: a compiled program for each length, or for each value of a static argument."""
    n = Names(rng)
    periods, steps = rng.randint(14, 17), 2
    deep, width = rng.randint(4, 5), rng.choice([32, 48])
    static = rng.random() < 0.4
    prog = progress(rng, rng.choice(["epoch", "round"]), "epoch", "PERIODS", "loss", silent_ok=False)
    draw = "epoch * STEPS + i"
    length = f"{rng.choice([16, 24])} + {draw}"
    head = ["def loss_of(params, x):", "    h = x", "    for w in params:", "        h = jnp.tanh(h @ w) + h", "    return jnp.mean(h ** 2)"]
    if static:
        fn = ["@partial(jax.jit, static_argnums=2)" if not fixed else "@jax.jit", "def update(params, x, horizon):" + ("" if fixed else "  #@also"), "    value, grads = jax.value_and_grad(loss_of)(params, x)",
              "    return [w - 0.01 / (1 + horizon) * g for w, g in zip(params, grads)], value"]
        call = [f"params, loss = update(params, x, {draw})" + ("" if fixed else "  #@keep")]
        shape = "64"
    else:
        fn = ["@jax.jit", "def update(params, x):" + ("" if fixed else "  #@also"), "    value, grads = jax.value_and_grad(loss_of)(params, x)", "    return [w - 0.01 * g for w, g in zip(params, grads)], value"]
        shape = length
        pad = ["x = np.pad(x, ((0, 128 - len(x)), (0, 0)))"] if fixed else []
        call = [*pad, "params, loss = update(params, x)" + ("" if fixed else "  #@keep")]
    imports = ["import jax", "import jax.numpy as jnp", "import numpy as np", "import time"] + (["from functools import partial"] if static and not fixed else [])
    body = [f"rng = np.random.default_rng({rng.randrange(99)})", f"params = [jnp.asarray(rng.standard_normal(({width}, {width})), jnp.float32) * 0.1 for _ in range({deep})]", *prog["before"], "for epoch in range(PERIODS):",
            *indent(["for i in range(STEPS):", *indent([f"x = rng.standard_normal(({shape}, {width})).astype(np.float32)", *call, *([f"time.sleep({0.05})"] if fixed else [])]), "loss = float(loss)", *prog["end"]])]
    lines = assemble(rng, n, "run.py", imports + prog["imports"], [("PERIODS", periods), ("STEPS", steps)], [head, fn], body)
    source, tags = finish(lines)
    return source, tags, truth("leak", "C42", "per call" if static else "per new shape", "call" if static else "shape", steps * prog["every"], prog, {"framework": "jax", "packages": ["jax", "numpy"]},
                               fix="Pad to a few lengths, or pass the number as an ordinary argument.", holder_kind="jit cache", kept="compiled programs", units_total=periods * steps)
