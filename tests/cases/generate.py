#!/usr/bin/env python3
"""Writes training programs whose memory behaviour is known, so that the doctor is not fitted to the hand-written cases.

  generate.py --seed 7 --count 200 --out FOLDER [--only-plain]    writes NAME.py and NAME.json (README.md has its fields)
  generate.py --balance FOLDER                                     counts verdicts, causes and checks

A program is a random combination of what holds (list, closure, lru_cache, chain of nodes, native block, ...), its rhythm, the size and kind of what is
kept, a framework, a way to lay out the script, names and progress lines. A leak may come with a twin: the same script with the fix.
measure.py runs them alone and writes down what they really do."""
import argparse
import ast
import collections
import glob
import hashlib
import json
import math
import os
import random
import re
import sys
import time

MB = 1e6
SHARES = {"leak": 45, "flat": 25, "cache": 10, "reserve": 8, "retention": 8, "fragmentation": 4}


# ---------------------------------------------------------------------------------------------------------------- names

POOLS = {
    "list": "items records history snapshots saved seen entries trace outputs kept collected archive memory log_rows results buffer samples frames".split(),
    "dict": "by_step lookup table index store known results_by_key journal states bucket mapping per_step found".split(),
    "Class": "Recorder Tracker Monitor Journal Inspector HistoryBook Meter Archive Observer Collector Notebook Watcher Summary Bookkeeper Scribe".split(),
    "obj": "recorder tracker monitor journal inspector book meter archive_ observer collector notebook watcher summary scribe".split(),
    "method": "add update note record push observe track take put_down remember_it on_batch after_step".split(),
    "func": "remember register keep_track note_result log_step store_result observe_step account_for mark_done report_to".split(),
    "Node": "Node Link Entry Step Frame Record Cell Item Stage Checkpoint".split(),
    "Thing": "Sample Rollout Snapshot Trial Episode Window Segment Observation Batch Example".split(),
    "global": "_SEEN _REGISTRY _STATE HISTORY _RECENT _ALL _RESULTS KNOWN _INDEX _POOL".split(),
    "forward": "forward encode project embed features hidden score activate transform predict_rows".split(),
    "out": "out z hidden_ scores emb feats acts pred proj codes logits".split(),
    "x": "x xb rows batch chunk part inputs".split(),
    "w": "w weights coef theta params kernel".split(),
    "data": "data corpus train_x pool_x signals vectors measurements table_x".split(),
    "loss": "loss err cost objective mse".split(),
    "train": "train_epoch run_epoch one_pass do_epoch train_once sweep fit_epoch".split(),
    "Trainer": "Trainer Runner Session Experiment Loop Learner Fitter Engine".split(),
    "Model": "Regressor Encoder Projection Network Ranker Scorer Mapper SmallNet".split(),
    "maker": "make_data load_data synthesize build_dataset sample_data read_inputs".split(),
    "main": "main run train start".split(),
    "i": "i step b k j".split(),
}
WORDS = ("churn demand signal sensor price route clinic tide harvest retail traffic voice speech glyph leaf cargo orbit pixel sketch query review ticket invoice rain wind soil "
         "reef parcel transit ledger meter turbine bridge gait pulse protein sugar plankton border ranking session basket playlist recipe chess").split()
TASKS = "fit train model embed rank probe sgd encoder loop policy forecast cluster tagger score regress baseline sweep tune".split()
COMMENTS = ["# TODO: move to config", "# same split as last year", "# small enough for a laptop", "# seeds fixed so that runs compare", "# works, do not touch",
            "# see notes from the Tuesday meeting", "# good enough for now", "# lr found by hand", "# numbers from the paper"]
DOCS = ["Baseline for the {a} task.", "Trains the {a} model on synthetic data.", "Quick experiment: {a} {b}.", "{a} {b}, second attempt.", "Run with: python {file}",
        "Fits a small model for {a} data and prints the loss."]


class Names:
    """Natural identifiers, each used once in a program."""

    def __init__(self, rng):
        self.rng, self.used, self.given = rng, set(), {}

    def new(self, role):
        free = [n for n in POOLS[role] if n not in self.used] or [n + "_2" for n in POOLS[role] if n + "_2" not in self.used]
        name = self.rng.choice(free)
        self.used.add(name)
        return name

    def __getitem__(self, role):
        if role not in self.given:
            self.given[role] = self.new(role)
        return self.given[role]


def indent(lines, depth=1):
    return ["    " * depth + line if line.strip() else "" for line in lines]


def block(text):
    """Lines of a block of source, without the blank ones around it."""
    return text.strip("\n").split("\n")


# ------------------------------------------------------------------------------------------------------ progress lines

def progress(rng, word, var, total, loss, silent_ok):
    """How a period is reported: imports, lines before the loop, lines at its end, the pattern, and periods for each mark."""
    style = rng.choice(["slash", "bracket", "round", "logging", "json", "write", "table", "colon", "rare", "percent"] + (["none"] if silent_ok else []))
    imports, before, end, every = [], [], [], 1
    if style == "slash":
        end, mark = [f'print(f"{word} {{{var} + 1}}/{{{total}}} loss={{{loss}:.4f}}")'], rf"^{word} \d+/"
    elif style == "bracket":
        end, mark = [f'print("[%2d] {rng.choice(["loss", "error", "mse", "objective"])} %.3f" % ({var}, {loss}))'], r"^\[ *\d+\]"
    elif style == "round":
        imports = ["import time"]
        end, mark = [f'print(f"{word} {{{var}}} done in {{time.time() - began:.1f}}s, {{{loss}:.3f}}", flush=True)'], rf"^{word} \d+ done"
        before = ["began = time.time()"]
    elif style == "logging":
        imports = ["import logging"]
        form = rng.choice(["%(asctime)s %(levelname)s %(message)s", "%(message)s", "%(asctime)s %(message)s"])
        before = [f'logging.basicConfig(level=logging.INFO, format="{form}")']
        end, mark = [f'logging.info("{word} %d: loss %.4f", {var}, {loss})'], rf"{word} \d+: loss"
    elif style == "json":
        imports = ["import json"]
        end, mark = [f'print(json.dumps({{"{word}": {var}, "loss": round(float({loss}), 5)}}))'], rf'^\{{"{word}": \d+'
    elif style == "write":
        imports = ["import sys"]
        end, mark = [f'sys.stdout.write(f"{word[:2]} {{{var}:04d}} | {{{loss}:.5f}}\\n")'], rf"^{word[:2]} \d+ \|"
    elif style == "table":
        before = [f'print("{word}\\tloss")']
        end, mark = [f'print({var}, round(float({loss}), 4), sep="\\t")'], r"^\d+\t"
    elif style == "colon":
        end, mark = [f'print(f"{word} {{{var}}}: {{{loss}:.4f}}")'], rf"^{word} \d+:"
    elif style == "rare":
        every = 2
        end, mark = [f"if {var} % 2 == 1:", f'    print(f"{word} {{{var} + 1}}: loss {{{loss}:.4f}}")'], rf"^{word} \d+: loss"
    elif style == "percent":
        end, mark = [f'print("%s %d/%d  %.4f" % ("{word}", {var} + 1, {total}, {loss}))'], rf"^{word} \d+/"
    else:
        mark = None
    return {"imports": imports, "before": before, "end": end, "mark": mark, "every": every}


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


# ------------------------------------------------------------------------------------------------------- whole programs

def header(rng, n, imports, file):
    lines = []
    if rng.random() < 0.4:
        lines += ['"""' + rng.choice(DOCS).format(a=rng.choice(WORDS).capitalize(), b=rng.choice(TASKS), file=file) + '"""']
    std = sorted({i for i in imports if i.split()[1].split(".")[0] in sys.stdlib_module_names})
    other = sorted({i for i in imports} - set(std), key=lambda i: (i.startswith("from"), i))
    return lines + std + ([""] if std and other else []) + other + [""]


def constants(rng, pairs):
    pairs = list(pairs)
    rng.shuffle(pairs)
    lines = [f"{k} = {v}" for k, v in pairs]
    if rng.random() < 0.3:
        k = rng.randrange(len(lines))
        lines[k] += "  " + rng.choice(COMMENTS)
    return lines + [""]


def assemble(rng, n, file, imports, consts, defs, main_lines, args=None, guard=True, main=None):
    """Puts a script together; args are (flag, type, default) read by argparse into names in capitals."""
    main = main or n["main"]
    if args:
        imports = [*imports, "import argparse"]
        parse = ["parser = argparse.ArgumentParser()"] + [f'parser.add_argument("--{flag}", type={kind}, default={default})' for flag, kind, default in args] + ["args = parser.parse_args()"]
        main_lines = parse + main_lines
    lines = header(rng, n, imports, file)
    if consts:
        lines += constants(rng, consts)
    lines += [""] if lines[-1] else []
    for d in defs:
        short = len(d) == 1 or not d[0].startswith(("def", "class", "@"))
        if not short and lines[-1]:
            lines += ["", ""]
        elif not short and len(lines) > 1 and lines[-2]:
            lines += [""]
        lines += [line for line in d]
        while lines and not lines[-1].strip():
            lines.pop()
        lines += [""] if short else ["", ""]
    while lines and not lines[-1].strip():
        lines.pop()
    lines += ["", ""]
    if guard:
        lines += [f"def {main}():", *indent(main_lines), "", "", 'if __name__ == "__main__":', f"    {main}()"]
    else:
        lines += main_lines
    return lines


def finish(lines):
    """Takes the tags out of the lines; returns the source and the tagged line numbers."""
    tags, clean = {"keep": [], "also": [], "made": [], "holder": []}, []
    for number, line in enumerate(lines, 1):
        m = re.search(r"\s+#@(\w+)$", line)
        if m:
            tags[m.group(1)].append(number)
            line = line[:m.start()]
        clean.append(line.rstrip())
    source = "\n".join(clean).rstrip() + "\n"
    return source, tags


def function_at(source, line):
    """The qualified name of the function around a line, <module> outside any."""
    best = ("<module>", 0)

    def walk(node, path):
        nonlocal best
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
                name = path + [child.name]
                first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
                if first <= line <= child.end_lineno and not isinstance(child, ast.ClassDef) and first > best[1]:
                    best = (".".join(name), first)
                walk(child, name)
            else:
                walk(child, path)
    walk(ast.parse(source), [])
    return best[0]


TIMED = block("""
def timed(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        start = time.perf_counter()
        try:
            return fn(*args, **kwargs)
        finally:
            wrapper.seconds += time.perf_counter() - start

    wrapper.seconds = 0.0
    return wrapper
""")


def fillers(rng, silent):
    """What people also have in their scripts: definitions, lines before the loop and lines after it."""
    defs, before, after = [], [], []
    if rng.random() < 0.3 and not silent:
        show = rng.choice(["show_config", "print_settings", "banner"])
        defs.append([f"def {show}(**settings):", "    for key in sorted(settings):", '        print(f"{key:>12} = {settings[key]}")'])
        before.append(f'{show}(dataset="{rng.choice(WORDS)}-{rng.randint(1, 9)}", host="{rng.choice(["lab", "gpu-box", "laptop"])}", steps=STEPS)')
    if rng.random() < 0.3:
        defs.append(["class Clock:", "    def __init__(self):", "        self.start = time.monotonic()", "", "    def minutes(self):", "        return (time.monotonic() - self.start) / 60"])
        before.append("clock = Clock()")
        after += [] if silent else ['print(f"finished after {clock.minutes():.2f} min")']
    return defs, before, after


def loop_layout(rng, n, work, holder, periods, per_period, pause, rhythm, every, word, silent_ok, extra_end=None):
    """The script around a workload and a holder: everything in main, a function for a period, or a class."""
    layout = rng.choice(["inline", "function", "class"])
    guard = not (layout == "inline" and rng.random() < 0.3)
    var = {"epoch": "epoch", "round": "round_", "iteration": "it", "pass": "p_", "sweep": "sweep_", "cycle": "cycle"}[word]
    total = "PERIODS"
    use_args = rng.random() < 0.3 and guard
    S = "self." if layout == "class" else ""
    loss, i = work["loss"], work["i"]
    name = holder["name"]
    R = f"{S}{name}" if name else ""
    prog = progress(rng, word, var, "args.epochs" if use_args and layout != "function" else total, loss, silent_ok)
    imports = [*work["imports"], *holder["imports"], *prog["imports"]]
    consts = [*work["consts"], ("STEPS", per_period)]
    fill = lambda lines: [s.replace("{S}", S).replace("{R}", R).replace("{E}", var).replace("{L}", loss) for s in lines]
    step = fill(work["step"])
    site = fill(holder["site"])
    sleep = []
    if pause > 0:
        imports.append("import time")
        sleep = [f"time.sleep({pause})" + rng.choice(["", "", "  # the machine is shared", "  # leave some air for the others", "  # loader latency"])]
    at_step = rhythm in ("batch", "call")
    inner = step + (site if at_step else []) + sleep
    after = []
    if not at_step:
        after = site if every == 1 else [f"if {var} % {every} == 0:", *indent(site)]
    after += fill(holder["close"])
    state = []
    for key, expr in work["state"]:
        expr = expr.replace("{rng}", f"{S}rng").replace("{model}", f"{S}model")
        state.append(f"{S}{key} = {expr}")
    defs = [*work["defs"], *holder["defs"]]
    init = [f"{S}{line}" for line in holder["init"]]
    more_defs, more_before, more_after = fillers(rng, prog["mark"] is None)
    if more_before:
        imports.append("import time")
    defs = more_defs + defs if rng.random() < 0.5 else defs + more_defs
    init = init if layout == "class" else more_before + init
    prog["before"] = prog["before"] + (more_before if layout == "class" else [])
    holder["end"] = [*holder["end"], *more_after]
    epochs = "args.epochs" if use_args else total
    if use_args:
        args = [("epochs", "int", periods)]
    else:
        args = None
        consts.append((total, periods))
    if layout == "inline":
        body = [*state, *init, *prog["before"], f"for {var} in range({epochs}):", *indent([f"for {i} in range(STEPS):", *indent(inner), *after, *prog["end"]]), *fill(holder["end"])]
        return assemble(rng, n, "run.py", imports, consts, defs, body, args, guard), prog
    if layout == "function":
        params = [var, *[k for k, _ in work["state"]], *([name] if name else [])]
        back = [loss, *([] if work["in_place"] else work["mutable"])]
        fn = n["train"]
        if args:
            prog["end"] = [e.replace(total, "args.epochs") for e in prog["end"]]
        decorated = rng.random() < 0.25
        if decorated:
            imports += ["import functools", "import time"]
            defs = [TIMED, *defs]
        fdef = [*(["@timed"] if decorated else []), f"def {fn}({', '.join(params)}):", *indent([f"for {i} in range(STEPS):", *indent(inner), *after, f"return {', '.join(back)}"])]
        body = [*state, *init, *prog["before"], f"for {var} in range({epochs}):", *indent([f"{', '.join(back)} = {fn}({', '.join(params)})", *prog["end"]]), *fill(holder["end"])]
        return assemble(rng, n, "run.py", imports, consts, defs + [fdef], body, args, guard), prog
    trainer, obj = n["Trainer"], rng.choice(["runner_", "trainer", "session", "job"])
    split = rng.random() < 0.5
    if split:
        methods = [f"    def one_step(self, {var}, {i}):", *indent(inner + [f"return {loss}"], 2), "", f"    def run(self, {var}):",
                   *indent([f"for {i} in range(STEPS):", f"    {loss} = self.one_step({var}, {i})", *after, f"return {loss}"], 2)]
        if not at_step and work["value"].split(".")[0].split("(")[-1].split(")")[0] in " ".join(site):  # the value is a local of the step: keep it there
            methods = [f"    def run(self, {var}):", *indent([f"for {i} in range(STEPS):", *indent(inner), *after, f"return {loss}"], 2)]
    else:
        methods = [f"    def run(self, {var}):", *indent([f"for {i} in range(STEPS):", *indent(inner), *after, f"return {loss}"], 2)]
    cdef = [f"class {trainer}:", "    def __init__(self):", *indent(state + init, 2), "", *methods]
    end = [e.replace("self.", f"{obj}.") for e in fill(holder["end"])]
    body = [f"{obj} = {trainer}()", *prog["before"], f"for {var} in range({epochs}):", *indent([f"{loss} = {obj}.run({var})", *prog["end"]]), *end]
    return assemble(rng, n, "run.py", imports, consts, defs + [cdef], body, args, guard), prog


def truth(verdict, cause, rhythm, unit, units_per_mark, prog, work, **more):
    t = {"framework": work["framework"], "packages": work["packages"], "cause": cause, "verdict": verdict, "rhythm": rhythm, "blame": None, "unit": unit, "units_per_mark": units_per_mark,
         "fix": "Nothing to fix.", "leak_free_twin": None, "mark": prog["mark"], "also_accept": []}
    t.update(more)
    return t


def busy_seconds(work):
    return work["flops"] / 6e9 + (3e-8 * work["elements"] if work["flops"] else 0) + work.get("seconds", 0) + 2e-4


def pace(rng, work, periods, per_period, seconds):
    """Seconds of sleep for each step, so that the run takes about `seconds` and a period 0.1 s or more."""
    want = max(seconds / periods, 0.11)
    busy = busy_seconds(work)
    return round(max(0.0005, want / per_period - 0.5 * busy), 4)


def sizes(rng, framework, small=False):
    """Rhythm, periods, units for each period and bytes for each unit of something that grows."""
    rhythm = rng.choice(["batch", "batch", "call", "epoch", "epoch", "kth"] if framework != "jax" else ["batch", "call"])
    periods = rng.randint(14, 40) if rhythm != "kth" else rng.randint(24, 40)
    every = rng.choice([2, 3, 4]) if rhythm == "kth" else 1
    per_period = rng.randint(4, 30) if rhythm in ("batch", "call") else rng.randint(2, 10)
    units = periods * per_period if rhythm in ("batch", "call") else periods // every
    total = math.exp(rng.uniform(math.log(70e6), math.log((180 if small else 450) * MB)))
    payload = min(max(total / units, 20e3), 8e6 if framework != "jax" else 1.5e6)  # larger outputs of jit: malloc's own noise hides the label
    if payload * units < 60e6:
        payload = 60e6 / units
    return rhythm, every, periods, per_period, int(payload)


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
    t = truth("leak", holder.get("cause", "C14"), name, unit, per_mark, prog, work, fix=holder["fix"], holder_kind=kind, kept=wrap, units_total=periods * per_mark // prog["every"])
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


# ------------------------------------------------------------------------------------------------------- what is no leak

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


def loop(framework):
    return lambda rng, _, fixed: loop_leak(rng, framework, fixed)


LEAKS_PLAIN = [(loop("python"), "python", 26), (loop("numpy"), "numpy", 34), (model_leak, "numpy", 5), (lru_leak, "numpy", 4), (lru_leak, "python", 3), (generator_leak, "numpy", 5), (figures, "numpy", 2)]
LEAKS_HEAVY = [(loop("torch"), "torch", 5), (torch_graph, "torch", 5), (loop("jax"), "jax", 4), (jax_shapes, "jax", 1.5), (loop("tensorflow"), "tensorflow", 2), (keras_fit, "keras", 5), (tf_retrace, "tensorflow", 1),
               (keras_models, "keras", 1), (keras_compile, "keras", 0.7)]
OTHER = {"flat": [(sawtooth, "numpy", 4), (garbage, "numpy", 3)], "cache": [(cache, "numpy", 9)], "reserve": [(reserve, "numpy", 8)], "retention": [(retention, "numpy", 1)], "fragmentation": [(fragmentation, "numpy", 1)]}
OTHER_HEAVY = {"cache": [(keras_cache, "keras", 1)], "reserve": [(torch_reserve, "torch", 1.5)]}


def build(seed, index, verdict, only_plain, fixed=False, attempt=0):
    """One program: its name, source and truth. fixed gives the twin of the leak of the same seed and index."""
    digest = hashlib.sha256(f"{seed}/{index}/{verdict}/{only_plain}/{attempt}".encode()).digest()
    rng = random.Random(int.from_bytes(digest[:8], "big"))
    if verdict == "leak":
        table = LEAKS_PLAIN + ([] if only_plain else LEAKS_HEAVY)
    else:
        table = OTHER[verdict] + ([] if only_plain else OTHER_HEAVY.get(verdict, []))
    maker, framework, _ = rng.choices(table, [w for *_, w in table])[0]
    name = f"{rng.choice(WORDS)}_{rng.choice(TASKS)}_{index:03d}"
    source, tags, t = maker(rng, framework, fixed)
    source = source.replace("python run.py", f"python {name}{'_v2' if fixed else ''}.py")
    if fixed:
        name += "_v2"
        t.update(verdict="flat", cause="none", rhythm="none", fix="Nothing to fix.", also_accept=["reserve"])
        t.pop("bytes_by_construction", None)
    elif verdict == "leak":
        lines = source.split("\n")
        if len(tags["keep"]) != 1:
            raise AssertionError(f"{name}: {len(tags['keep'])} lines keep\n{source}")
        line = tags["keep"][0]
        where = function_at(source, line)
        also = sorted({*tags["also"], *(m for m in tags["made"] if function_at(source, m) == where)} - {line})
        t["blame"] = {"file": name + ".py", "line": line, "function": where, "text": lines[line - 1].strip()}
        if also:
            t["blame"]["also_lines"] = also
    if t["verdict"] not in ("leak", "flat") and tags["holder"]:
        t["holder"] = {"line": tags["holder"][0], "text": source.split("\n")[tags["holder"][0] - 1].strip()}
    t = {"name": name, **t, "bytes_per_unit": 0, "made_from": {"seed": seed, "index": index, "verdict": verdict, "only_plain": only_plain, "attempt": attempt}}
    ast.parse(source)
    return name, source, t


def write(folder, name, source, t):
    with open(os.path.join(folder, name + ".py"), "w") as f:
        f.write(source)
    save(folder, t)


def save(folder, t):
    with open(os.path.join(folder, t["name"] + ".json"), "w") as f:
        f.write(re.sub(r"\[\s+([-\d.,\s]+?)\s+\]", lambda m: "[" + re.sub(r"\s+", " ", m.group(1)) + "]", json.dumps(t, indent=1)) + "\n")


def generate(seed, count, folder, only_plain):
    os.makedirs(folder, exist_ok=True)
    rng = random.Random(f"plan {seed} {count}")
    want = {v: round(count * share / 100) for v, share in SHARES.items()}
    want["leak"] += count - sum(want.values())
    plan = []
    twins = min(want["leak"], round(want["flat"] * 0.72))
    plan += [("leak", k < twins) for k in range(want["leak"])]
    plan += [(v, False) for v in ("flat", "cache", "reserve", "retention", "fragmentation") for _ in range(want[v] - (twins if v == "flat" else 0))]
    rng.shuffle(plan)
    for index, (verdict, twin) in enumerate(plan):
        write_pair(folder, seed, index, verdict, only_plain, twin)
    print(f"{count} programs in {folder}")


def write_pair(folder, seed, index, verdict, only_plain, twin, attempt=0):
    name, source, t = build(seed, index, verdict, only_plain, attempt=attempt)
    names = [name]
    if twin:
        other, other_source, other_t = build(seed, index, verdict, only_plain, fixed=True, attempt=attempt)
        t["leak_free_twin"] = other
        write(folder, other, other_source, other_t)
        names.append(other)
    write(folder, name, source, t)
    return names


def balance(folder):
    cases = []
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        with open(path) as f:
            cases.append(json.load(f))
    for title, key in (("verdict", lambda c: c["verdict"]), ("cause of leaks", lambda c: c["cause"] if c["verdict"] == "leak" else None), ("framework", lambda c: c["framework"]),
                       ("rhythm of leaks", lambda c: c["rhythm"] if c["verdict"] == "leak" else None), ("holder of leaks", lambda c: c.get("holder_kind") if c["verdict"] == "leak" else None),
                       ("check", lambda c: c.get("check", "not measured")[:30])):
        print(f"{title}: " + ", ".join(f"{k} {v}" for k, v in collections.Counter(k for k in map(key, cases) if k).most_common()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--out")
    parser.add_argument("--only-plain", action="store_true", help="plain Python and numpy only")
    parser.add_argument("--balance", metavar="FOLDER")
    args = parser.parse_args()
    if args.out:
        generate(args.seed, args.count, args.out, args.only_plain)
    if args.balance:
        balance(args.balance)
    if not (args.out or args.balance):
        parser.error("one of --out, --balance")


if __name__ == "__main__":
    main()
