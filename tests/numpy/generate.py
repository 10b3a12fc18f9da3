#!/usr/bin/env python3
"""Writes what NumPy says of every operator for every dtype it accepts, for the C++ runner to compare with: one .npy file of
values for each dtype, and cases.json, whose tensors are places in those files. Gradients of floating types are JAX's, in
float64. Nothing of it is committed.

usage: generate.py FOLDER

A case: {"op": name, "of": options, "in": [tensor], "out": [tensor], "near": how near, "dy": tensor, "dx": [tensor or null]}.
"near" counts units in the last place of the result's type, of the largest value that went into a result where "sum" says so;
0: the same bits, but for the NaN's. "view": the first operand is also handed in as a part of something else, which the graph takes out of it, so
that what the operator reads is no plain input: {"order": ...} is what the operand was transposed by, {"margin": [before, after]} lies around it in
every dimension.
"""
import itertools, json, math, os, pathlib, sys, warnings
os.environ.setdefault("JAX_PLATFORMS", "cpu")
import numpy as np
import ml_dtypes
import jax, jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
warnings.simplefilter("ignore")
np.seterr(all="ignore")

SEED = int(os.environ.get("MILLPOND_NUMPY_SEED", 1))
BF = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype("float32"), np.dtype("float64"), BF, np.dtype("float16")]
SIGNED = [np.dtype(t) for t in ("int8", "int16", "int32", "int64")]
UNSIGNED = [np.dtype(t) for t in ("uint8", "uint16", "uint32", "uint64")]
WHOLE = SIGNED + UNSIGNED
NUMBERS = FLOATS + WHOLE
ALL = NUMBERS + [np.dtype("bool")]
SHAPES = [(0,), (1,), (7, 13), (3, 1, 17), (2, 67, 5), (4099,)]
rng = np.random.default_rng(SEED)


class Pools:
    """All values of a dtype, one behind the other."""

    def __init__(self):
        self.parts, self.sizes = {}, {}

    def put(self, x):
        x = np.asarray(x)
        name = x.dtype.name
        at = self.sizes.get(name, 0)
        self.parts.setdefault(name, []).append(x.ravel())
        self.sizes[name] = at + x.size
        return {"dtype": name, "at": at, "shape": list(x.shape)}

    def write(self, folder):
        for name, parts in self.parts.items():
            x = np.concatenate(parts)
            np.save(folder / f"{name}.npy", x)


pools, cases = Pools(), []


def draw(shape, t, low=-4, high=4, special=True):
    """Values of a type; with NaN, infinities, zeros of both signs, and the ends of whole numbers among them."""
    n = int(np.prod(shape))
    if t == np.dtype("bool"):
        return rng.integers(0, 2, shape).astype(t)
    if t in WHOLE:
        info = np.iinfo(t)
        x = rng.integers(info.min, info.max, shape, dtype=t, endpoint=True)
        small = rng.integers(max(info.min, -9), 10, shape).astype(t)
        x = np.where(rng.random(shape) < 0.5, x, small)
        ends = [info.min, info.max, 0, 1, info.max - 1]
    else:
        x = rng.uniform(low, high, shape).astype(t)
        ends = [np.nan, np.inf, -np.inf, 0.0, -0.0]
    if special and n >= 7:
        flat = x.reshape(-1)
        for e in ends:
            flat[rng.integers(0, n)] = np.array(e).astype(t)
    return x.astype(t)


def add(op, inputs, outputs, near=0, gradient=None, **of):
    """gradient: the function in jax.numpy, of the floating inputs in float64; only where all of them are finite."""
    case = {"op": op, "of": of, "in": [pools.put(x) for x in inputs], "out": [pools.put(y) for y in outputs], "near": near}
    if "sum" in of:
        case["sum"] = float(of.pop("sum"))
    x = inputs[0]
    if x.size and x.ndim:
        orders = [p for p in itertools.permutations(range(x.ndim)) if p != tuple(range(x.ndim))]
        margin = {"margin": [int(rng.integers(0, 3)), int(rng.integers(1, 3))]}
        case["view"] = {"order": list(orders[rng.integers(0, len(orders))])} if orders and rng.integers(0, 2) else margin
    floating = [i for i, x in enumerate(inputs) if x.dtype in FLOATS]
    if gradient and floating and all(np.isfinite(inputs[i].astype("f8")).all() for i in floating):
        wide = [jnp.asarray(x.astype("f8")) if x.dtype in FLOATS else jnp.asarray(x) for x in inputs]

        def f(*xs):
            given = list(wide)
            for i, x in zip(floating, xs):
                given[i] = x
            return gradient(*given)
        y, back = jax.vjp(f, *[wide[i] for i in floating])
        dy = rng.uniform(-1, 1, y.shape).astype(outputs[0].dtype)
        dx = [None] * len(inputs)
        for i, d in zip(floating, back(jnp.asarray(dy.astype("f8")))):
            dx[i] = pools.put(np.asarray(d).astype(inputs[i].dtype))
        case["dy"], case["dx"] = pools.put(dy), dx
    cases.append(case)


def wide(x):
    return x.astype("f8") if x.dtype in FLOATS else x


def erf(x):
    return np.vectorize(math.erf, otypes=["f8"])(x) if x.size else x


EXACT1 = {"negate": np.negative, "abs": np.abs, "square": np.square, "sqrt": np.sqrt,
          "sign": lambda x: np.sign(x.astype("f4")).astype(x.dtype) if x.dtype in (BF,) else np.sign(x),
          "relu": lambda x: np.maximum(x, np.array(0, x.dtype))}
NEAR1 = {"exp": (np.exp, jnp.exp), "log": (np.log, jnp.log), "log1p": (np.log1p, jnp.log1p),
         "rsqrt": (lambda x: 1 / np.sqrt(x), lambda x: 1 / jnp.sqrt(x)), "tanh": (np.tanh, jnp.tanh),
         "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), jax.nn.sigmoid), "erf": (erf, jax.scipy.special.erf)}
JAX1 = {"negate": jnp.negative, "abs": jnp.abs, "square": jnp.square, "sqrt": jnp.sqrt, "sign": jnp.sign, "relu": jax.nn.relu}


def unary():
    for t in NUMBERS:
        for shape in SHAPES:
            for name, f in EXACT1.items():
                if name == "sqrt" and t not in FLOATS:
                    continue
                x = draw(shape, t)
                add(name, [x], [f(x).astype(t)])
                if t in FLOATS:
                    x = draw(shape, t, 0.1 if name == "sqrt" else -4, special=False)
                    add(name, [x], [f(x).astype(t)], gradient=JAX1[name])
            if t not in FLOATS:
                continue
            for name, (f, g) in NEAR1.items():
                low = {"log": 1e-3, "rsqrt": 1e-2, "log1p": -0.9}.get(name, -9)
                for special in (True, False):
                    x = draw(shape, t, low, 9, special)
                    add(name, [x], [f(x.astype("f8")).astype(t)], near=4, gradient=g)


def gate(x, y):
    return np.where(y > 0, x, np.zeros((), x.dtype)).astype(x.dtype)


BOTH = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
        "floor_divide": np.floor_divide, "remainder": np.remainder, "gate": gate}
COMPARE = {"greater": np.greater, "greater_equal": np.greater_equal, "equal": np.equal}
BITS = {"left_shift": np.left_shift, "right_shift": np.right_shift, "bitwise_and": np.bitwise_and,
        "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}
JAX2 = {"add": jnp.add, "subtract": jnp.subtract, "multiply": jnp.multiply, "divide": jnp.divide, "maximum": jnp.maximum,
        "minimum": jnp.minimum, "power": jnp.power}


def pairs(t, low=-4, high=4, special=True):
    """Operands of one shape, a row, a column, a number."""
    for a, b in [((0,), (0,)), ((1,), (1,)), ((4099,), (4099,)), ((7, 13), (13,)), ((7, 13), (7, 1)), ((7, 13), ()),
                 ((), (3, 5)), ((2, 67, 5), (67, 5)), ((3, 1), (1, 17))]:
        yield draw(a, t, low, high, special), draw(b, t, low, high, special)


def wide_halves(f, x, y):
    """NumPy's float16 and ml_dtypes round what float32 gives; so do we."""
    if x.dtype in (BF, np.dtype("float16")):
        return f(x.astype("f4"), y.astype("f4")).astype(x.dtype)
    return f(x, y)


def binary():
    for t in NUMBERS:
        for name, f in BOTH.items():
            for x, y in pairs(t):
                if name in ("floor_divide", "remainder") and t in FLOATS:
                    y = np.where(np.abs(y.astype("f4")) < 1e-2, np.array(0.5, t), y).astype(t)
                add(name, [x, y], [wide_halves(f, x, y)])
            if t in FLOATS and name in JAX2:
                for x, y in pairs(t, special=False):
                    # the gradient of equal operands goes to x here and in TensorFlow, to both in JAX
                    tie = name in ("maximum", "minimum") and bool((x == y).any())
                    add(name, [x, y], [wide_halves(f, x, y)], gradient=None if tie else JAX2[name])
    for t in ALL:
        for name, f in COMPARE.items():
            for x, y in pairs(t):
                y = np.where(rng.random(y.shape) < 0.3, x.flat[0] if x.size else y, y).astype(t)
                add(name, [x, y], [f(x, y)])
    for t in WHOLE + [np.dtype("bool")]:
        for name, f in BITS.items():
            if t == np.dtype("bool") and "shift" in name:
                continue
            for x, y in pairs(t):
                if "shift" in name:  # around the number of bits
                    bits = t.itemsize * 8
                    y = rng.integers(-2 if t in SIGNED else 0, bits + 3, y.shape).astype(t)
                add(name, [x, y], [f(x, y)])
    for t in [np.dtype("bool")]:
        for name in ("maximum", "minimum"):
            for x, y in pairs(t):
                add(name, [x, y], [BOTH[name](x, y)])
    for t in FLOATS:
        for special in (True, False):
            for x, y in pairs(t, special=special):
                if not special:  # what float16 divides by less than that, squared, is beyond it
                    y = np.where(np.abs(y.astype("f4")) < 0.25, np.array(0.5, t), y).astype(t)
                add("divide", [x, y], [wide_halves(np.divide, x, y)], gradient=None if special else JAX2["divide"], near=1)
            for x, y in pairs(t, 0.1, 3, special):
                add("power", [x, y], [np.power(wide(x), wide(y)).astype(t)], near=4, gradient=JAX2["power"])
        for x, y in pairs(t, special=False):
            y = np.abs(y.astype("f4") / 4).astype(t)
            f = lambda m: (lambda a, b: m.maximum(a, 0) - a * b + m.log1p(m.exp(-m.abs(a))))
            add("sigmoid_cross_entropy", [x, y], [f(np)(wide(x), wide(y)).astype(t)], near=8, sum=4)


def others():
    for t in ALL:
        for shape in SHAPES:
            c, x, y = draw(shape, np.dtype("bool")), draw(shape, t), draw(shape[-1:], t)
            add("select", [c, x, y], [np.where(c, x, y)])
            # a cast: what does not fit too
            for u in ALL:
                if t == u or shape not in ((0,), (7, 13), (4099,)):
                    continue
                x = draw(shape, t, -300, 300)
                if t in FLOATS and x.size > 20:
                    edge = np.array([2147483520.0, 3e9, -3e9, 1e10, 1e19, -1e19, 1e30, 255.9, -0.9, 70000.0])
                    x.reshape(-1)[-10:] = edge.astype(t)
                halves = (BF, np.dtype("float16"))
                through = x.astype("f4") if t in halves else x  # halves are floats in between, NumPy's and ours
                if u in halves and t not in FLOATS:
                    through = np.clip(x.astype("f8"), -60000, 60000)  # ml_dtypes rounds a whole number twice
                    x = through.astype(t)
                    through = x.astype("f8")
                add("cast", [x], [through.astype(u)], dtype=u.name)
        x = draw((3, 5, 7), t)
        add("reshape", [x], [x.reshape(15, 7)], shape=[15, 7])
        for order in ([2, 0, 1], [1, 0, 2], [0, 2, 1]):
            add("transpose", [x], [x.transpose(order)], order=order)
        x = draw((67, 131), t)
        add("transpose", [x], [x.T], order=[1, 0])
        a, b = draw((3, 5, 7), t), draw((3, 2, 7), t)
        add("concatenate", [a, b], [np.concatenate([a, b], 1)], axis=1)
        add("slice", [a], [a[1:3, 2:5, 0:6]], starts=[1, 2, 0], sizes=[2, 3, 6])
        value = 1 if t == np.dtype("bool") else 3
        for v in (0, value):
            add("pad", [a], [np.pad(a, [(1, 0), (0, 2), (3, 1)], constant_values=np.array(v).astype(t))], before=[1, 0, 3],
                after=[0, 2, 1], value=v)
        row = draw((7,), t)
        add("broadcast_to", [row], [np.broadcast_to(row, (5, 3, 7))], shape=[5, 3, 7])
        for shape in [(5, 1), (7, 13), (64, 130), (3, 5, 7)]:
            x = draw(shape, t, special=False)
            for axes in {(0,), (len(shape) - 1,), tuple(range(len(shape))), tuple(range(len(shape) - 1)), tuple(range(0, len(shape), 2))}:
                of = {"axes": list(axes), "keepdims": bool(rng.integers(0, 2))}
                k = of["keepdims"]
                add("max", [x], [x.max(axis=axes, keepdims=k)], **of)
                if t in FLOATS:
                    n = int(np.prod([shape[i] for i in axes]))
                    y = draw(shape, t)
                    add("max", [y], [np.asarray(y.astype("f8").max(axis=axes, keepdims=k)).astype(t)], **of)
                    for name, f, g in (("sum", np.sum, jnp.sum), ("mean", np.mean, jnp.mean)):
                        add(name, [x], [np.asarray(f(x.astype("f8"), axis=axes, keepdims=k)).astype(t)], near=n + 2,
                            sum=4 * (n if name == "sum" else 1), gradient=lambda v, g=g, axes=axes, k=k: g(v, axis=axes, keepdims=k), **of)
                elif t != np.dtype("bool"):
                    add("sum", [x], [np.sum(x, axis=axes, keepdims=k, dtype=t)], **of)
        # Of nothing the sum is 0 and the mean NaN; the maximum, which NumPy refuses, is the least value there is, as in TensorFlow.
        least = -np.inf if t in FLOATS else False if t == np.dtype("bool") else np.iinfo(t).min
        for shape, axes in [((0,), (0,)), ((0, 3), (0,)), ((0, 3), (1,)), ((0, 3), (0, 1)), ((4, 0, 3), (1,)), ((4, 0, 3), (0, 2)), ((4, 0, 3), (0, 1)), ((4, 0, 70), (1,))]:
            x, of = np.zeros(shape, t), {"axes": list(axes), "keepdims": bool(rng.integers(0, 2))}
            k = of["keepdims"]
            add("max", [x], [np.asarray(x.max(axis=axes, keepdims=k, initial=np.array(least).astype(t))).astype(t)], **of)
            if t != np.dtype("bool"):
                add("sum", [x], [np.asarray(np.sum(x, axis=axes, keepdims=k, dtype=t))], gradient=lambda v, axes=axes, k=k: jnp.sum(v, axis=axes, keepdims=k), **of)
            if t in FLOATS:
                add("mean", [x], [np.asarray(x.astype("f8").mean(axis=axes, keepdims=k)).astype(t)], gradient=lambda v, axes=axes, k=k: jnp.mean(v, axis=axes, keepdims=k), **of)
        x = draw((9, 31), t, special=False)
        add("argmax", [x], [x.argmax(-1).astype("int32")])
        for index in WHOLE:
            table, at = draw((11, 5), t), rng.integers(0, 11, (4, 3)).astype(index)
            add("gather", [table, at], [table[at]])
            if t != np.dtype("bool"):
                rows = draw((4, 3, 5), t, special=False)
                out = np.zeros((11, 5), t)
                exact = t not in (BF, np.dtype("float16"))
                np.add.at(out, at, rows)
                add("scatter_add", [at, rows], [out], near=0 if exact else 8, sum=16, count=11)
            if t == np.dtype("float32"):
                labels = rng.integers(0, 7, (13,)).astype(index)
                add("one_hot", [labels], [np.eye(7, dtype="f4")[labels]], depth=7, dtype="float32")
        labels = rng.integers(0, 7, (13,)).astype("int32")
        add("one_hot", [labels], [np.eye(7)[labels].astype(t)], depth=7, dtype=t.name)


def floating():
    for t in FLOATS:
        for a, b in [((1, 1), (1, 1)), ((3, 5), (5, 7)), ((17, 129), (129, 33)), ((2, 3, 13, 5), (2, 3, 5, 4)), ((64, 300), (300, 70))]:
            for ta in (False, True):
                for tb in (False, True):
                    x, y = draw(a, t, -1, 1, False), draw(b, t, -1, 1, False)
                    p, q = np.swapaxes(x, -1, -2) if ta else x, np.swapaxes(y, -1, -2) if tb else y
                    s = lambda v: jnp.swapaxes(v, -1, -2)
                    f = lambda u, v, ta=ta, tb=tb, s=s: jnp.matmul(s(u) if ta else u, s(v) if tb else v)
                    add("matmul", [np.ascontiguousarray(p), np.ascontiguousarray(q)],
                        [np.matmul(x.astype("f8"), y.astype("f8")).astype(t)], near=a[-1] + 2, sum=a[-1], transpose_a=ta,
                        transpose_b=tb, gradient=f)
        for m, n, k in [(0, 5, 7), (3, 0, 7), (3, 5, 0)]:  # of nothing, and nothing; a sum over nothing is 0
            x, y = draw((m, k), t, -1, 1, False), draw((k, n), t, -1, 1, False)
            add("matmul", [x, y], [np.matmul(x, y).astype(t)], transpose_a=False, transpose_b=False, gradient=jnp.matmul)
        for shape in [(1,), (7, 13), (3, 1, 17), (4099,)]:  # without a rate all stay, whatever they are
            for special in (True, False):
                x = draw(shape, t, special=special)
                add("dropout", [x, np.array(rng.integers(0, 1000), "int32")], [x], gradient=lambda x, c: x, rate=0.0)
        for shape in [(0, 5), (1, 1), (5, 10), (3, 4, 37)]:
            x = draw(shape, t, special=False)
            if not x.size:
                add("softmax", [x], [x])
                continue
            e = np.exp(x.astype("f8") - x.astype("f8").max(-1, keepdims=True))
            add("softmax", [x], [(e / e.sum(-1, keepdims=True)).astype(t)], near=8, gradient=jax.nn.softmax)
            labels = rng.integers(0, shape[-1], shape[:-1]).astype("int32")
            z = x.astype("f8")
            loss = np.log(np.exp(z).sum(-1)) - np.take_along_axis(z, labels[..., None].astype(int), -1)[..., 0]
            add("softmax_cross_entropy", [x, labels], [loss.astype(t)], near=8, sum=4,
                gradient=lambda z, l: jax.nn.logsumexp(z, axis=-1) - jnp.take_along_axis(z, l[..., None], -1)[..., 0])
        x, w = draw((2, 7, 9, 3), t, -1, 1, False), draw((3, 3, 3, 5), t, -1, 1, False)
        conv = lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        add("conv2d", [x, w], [np.asarray(conv(jnp.asarray(x.astype("f8")), jnp.asarray(w.astype("f8")))).astype(t)], near=29,
            sum=27, gradient=conv)
        windows = np.lib.stride_tricks.sliding_window_view(x.astype("f8"), (2, 2), axis=(1, 2))[:, ::2, ::2]
        add("max_pool2d", [x], [windows.max((-1, -2)).astype(t)],
            gradient=lambda v: jax.lax.reduce_window(v, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"))
        add("average_pool2d", [x], [windows.mean((-1, -2)).astype(t)], near=6, sum=4,
            gradient=lambda v: jax.lax.reduce_window(v, 0.0, jax.lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4)
        bad = x.copy()
        bad.reshape(-1)[rng.integers(0, bad.size, 20)] = np.array(np.nan).astype(t)
        windows = np.lib.stride_tricks.sliding_window_view(bad.astype("f8"), (2, 2), axis=(1, 2))[:, ::2, ::2]
        add("max_pool2d", [bad], [windows.max((-1, -2)).astype(t)])
        x, gamma, beta = draw((6, 37), t, -2, 2, False), draw((37,), t, 0.5, 2, False), draw((37,), t, -1, 1, False)

        def norm(m, x, g, b):
            mean = x.mean(-1, keepdims=True)
            return (x - mean) / m.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-3) * g + b
        layer_norm = x, gamma, beta
        for shape in [(6, 37), (64, 3), (2, 5, 7, 16), (1, 1)]:
            c = shape[-1]
            x, gamma, beta = draw(shape, t, -2, 2, False), draw((c,), t, 0.5, 2, False), draw((c,), t, -1, 1, False)

            def batch_norm(m, x, g, b):
                axes = tuple(range(x.ndim - 1))
                mean, variance = x.mean(axes), x.var(axes)
                return (x - mean) / m.sqrt(variance + 1e-3) * g + b, mean, variance
            wide_ones = [x.astype("f8"), gamma.astype("f8"), beta.astype("f8")]
            for output in range(3):
                add("batch_norm", [x, gamma, beta], [np.asarray(batch_norm(np, *wide_ones)[output]).astype(t)], near=16, sum=4, output=output,
                    gradient=lambda x, g, b, output=output: batch_norm(jnp, x, g, b)[output])
        x, gamma, beta = layer_norm
        add("layer_norm", [x, gamma, beta], [norm(np, x.astype("f8"), gamma.astype("f8"), beta.astype("f8")).astype(t)], near=16,
            sum=4, gradient=lambda x, g, b: norm(jnp, x, g, b))


def main(folder):
    folder = pathlib.Path(folder)
    stamp = folder / "stamp"
    want = f"{SEED} {pathlib.Path(__file__).stat().st_mtime_ns} {np.__version__}"
    if stamp.exists() and stamp.read_text() == want:
        return print("numpy: cases are there already")
    folder.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    for part in (unary, binary, others, floating):
        part()
    pools.write(folder)
    (folder / "cases.json").write_text(json.dumps(cases))
    stamp.write_text(want)
    print(f"numpy: {len(cases)} cases from seed {SEED} by NumPy {np.__version__} in {folder}")


if __name__ == "__main__":
    main(sys.argv[1])
