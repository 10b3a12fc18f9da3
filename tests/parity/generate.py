"""Writes what Keras (TensorFlow) computes, for the C++ runner to compare with: one folder a case with the model's JSON,
case.json and .npy files (weights, inputs, labels, outputs, gradients, weights after ten steps). Nothing of it is committed.

usage: generate.py FOLDER [--only TEXT]

Every case draws its shapes and options from a stream of its own, made of the seed and the case's name: one case alone is the
same as among all. MILLPOND_PARITY_SEED=N gives other draws (default 1).
"""
import argparse, json, os, pathlib, shutil, subprocess, sys, zlib
os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import logging, numpy as np
logging.getLogger("tensorflow").setLevel(logging.ERROR)

STEPS = 10
SEED = int(os.environ.get("MILLPOND_PARITY_SEED", 1))
WORKERS = 2  # most of the time goes into Keras's own Python


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--part", type=int, help="this worker's number")
    options = parser.parse_args()
    names = [name for name in CASES if options.only in name]
    if options.part is not None:
        return work(options.folder, names[options.part::WORKERS])
    stamp = options.folder / "stamp"
    want = f"{options.only or 'all'} {SEED} {pathlib.Path(__file__).stat().st_mtime_ns}"
    if stamp.exists() and stamp.read_text() == want:
        print("parity: cases are there already")
        return
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    workers = [subprocess.Popen([sys.executable, *sys.argv, "--part", str(i)]) for i in range(WORKERS)]
    if any([w.wait() for w in workers]):
        sys.exit("parity: Keras could not make every case, see above")
    stamp.write_text(want)
    print(f"parity: {len(names)} cases from seed {SEED} in {options.folder}")


def work(folder, names):
    import keras, tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    for name in names:
        keras.utils.clear_session()
        keras.config.set_dtype_policy("float32")
        d = Draw(name)
        keras.utils.set_random_seed(d.n(0, 2**31))
        try:
            write(folder / name, d, *CASES[name](d))
        except Exception as e:
            e.add_note(f"in case {name}, seed {SEED}")
            raise


class Draw:
    """The random choices of one case."""
    def __init__(self, name):
        self.r = np.random.default_rng([SEED, zlib.crc32(name.encode())])

    def pick(self, *choices):
        return choices[int(self.r.integers(len(choices)))]

    def n(self, low, high):
        return int(self.r.integers(low, high + 1))

    def real(self, low, high):
        return float(self.r.uniform(low, high))

    def normal(self, shape):
        return self.r.normal(0, 1, shape).astype("float32")

    def shape(self, ranks=(1, 3), sizes=(1, 6)):
        """Of one sample."""
        return tuple(self.n(*sizes) for _ in range(self.n(*ranks)))


def write(folder, d, model, xs, ys, compiled):
    import keras, tensorflow as tf
    folder.mkdir()
    save = lambda name, a: np.save(folder / name, np.ascontiguousarray(a))
    one = lambda a: a[0] if len(a) == 1 else list(a)
    (folder / "model.json").write_text(model.to_json())
    finish = lambda **facts: (folder / "case.json").write_text(json.dumps(dict(compiled, inputs=len(xs), outputs=len(ys), weights=len(model.weights), **facts), indent=1))
    for i, x in enumerate(xs): save(f"x{i}", x)
    for i, y in enumerate(ys): save(f"y{i}", y)
    if "statistics" in compiled:  # drawn by Keras: first weights, or outputs while training
        drawn = model.get_weights() if compiled["statistics"] == "weights" else [model(one(xs), training=True).numpy()]
        for i, s in enumerate(drawn): save(f"s{i}", s)
        return finish(drawn=len(drawn))
    for w in model.weights:
        into = int(np.prod(w.shape[:-1])) if len(w.shape) > 1 else 4
        v = d.r.normal(0, into ** -0.5, w.shape).astype("float32")
        if "variance" in w.path or "gamma" in w.path:
            v = np.abs(v) + 0.5
        w.assign(v)
    before = model.get_weights()
    for i, w in enumerate(before): save(f"w{i}", w)
    model.save_weights(folder / "keras.weights.h5")
    out = model.predict(one(xs), batch_size=len(xs[0]), verbose=0)
    outs = out if isinstance(out, list) else [out]
    for i, o in enumerate(outs): save(f"out{i}", o)

    optimizer = getattr(keras.optimizers, compiled["optimizer"]["class"])(**compiled["optimizer"]["options"])
    losses = [getattr(keras.losses, l["class"])(**l["options"]) for l in compiled["losses"]]
    metrics = compiled.setdefault("metrics", [[] for _ in outs])
    made = [[m if isinstance(m, str) else getattr(keras.metrics, m["class"])(**m["options"]) for m in each] for each in metrics]
    if "named" in compiled:  # losses, weights and metrics by the outputs' names, in another order than theirs
        by_name = lambda values: dict(reversed(list(zip(compiled["named"], values))))
        model.compile(optimizer, by_name(losses), loss_weights=by_name(compiled["loss_weights"]), metrics=by_name(made), jit_compile=False)
    else:
        model.compile(optimizer, one(losses), metrics=one(made), jit_compile=False)
    if "batches" in compiled:  # epochs over batches of several shapes
        batches = compiled.pop("batches")
        for i, (x, y) in enumerate(batches): save(f"bx{i}", x), save(f"by{i}", y)
        spec = [tf.TensorSpec([None] * a.ndim, a.dtype) for a in batches[0]]
        data = tf.data.Dataset.from_generator(lambda: iter(batches), output_signature=tuple(spec))
        history = model.fit(data, epochs=3, shuffle=False, verbose=0).history
        for i, w in enumerate(model.get_weights()): save(f"t{i}", w)
        return finish(batches=len(batches), history=history)
    if "fit" in compiled:  # whole epochs in a fixed order instead of ten steps
        return finish(history=model.fit(one(xs), one(ys), shuffle=False, verbose=0, **compiled["fit"]).history)

    evaluated = model.evaluate(one(xs), one(ys), batch_size=len(xs[0]), verbose=0, return_dict=True)
    if "evaluate_batch" in compiled:  # in several batches, the last of them shorter: the same, but for the order of sums
        parts = model.evaluate(one(xs), one(ys), batch_size=compiled["evaluate_batch"], verbose=0, return_dict=True)
        compiled["evaluated_in_batches"] = {k: float(v) for k, v in parts.items()}
    variables = [] if compiled.get("inference") else model.trainable_variables

    @tf.function
    def gradients(x, y):
        with tf.GradientTape() as tape:
            loss = model.compute_loss(x, y, model(x, training=True))
        return loss, tape.gradient(loss, [v.value for v in variables])

    if variables:
        _, grads = gradients(one([tf.constant(x) for x in xs]), one([tf.constant(y) for y in ys]))
        for i, g in enumerate(grads): save(f"g{i}", np.zeros(variables[i].shape, "float32") if g is None else tf.convert_to_tensor(g).numpy())
        model.set_weights(before)  # moving averages have moved
    curve = []
    for _ in range(STEPS if variables else 0):
        curve.append(float(model.train_on_batch(one(xs), one(ys), return_dict=True)["loss"]))
        model.reset_metrics()
    for i, w in enumerate(model.get_weights()): save(f"t{i}", w)
    finish(trainable=len(variables), names=[w.path for w in model.weights], curve=curve, evaluated={k: float(v) for k, v in evaluated.items()})


# ---- the cases: what each layer, loss and optimizer is tried with

CASES = {}  # name: a function from Draw to model, inputs, labels and what it is compiled with
MSE = {"class": "MeanSquaredError", "options": {}}
SPARSE = {"class": "SparseCategoricalCrossentropy", "options": {}}


def sgd(rate=0.01):
    return {"class": "SGD", "options": {"learning_rate": rate}}


def case(name, *each):
    """Registers a function of (Draw, value) once for each of the values, or of (Draw) once."""
    def register(f):
        if not each:
            CASES[name] = f
        for v in each:
            CASES[f"{name}_{v}"] = lambda d, v=v: f(d, v)
        return f
    return register


def lazily(module):
    class Lazy:  # `import keras` takes seconds, which the parent process need not spend
        def __getattr__(self, name):
            import importlib
            return getattr(importlib.import_module(module), name)
    return Lazy()


K, L = lazily("keras"), lazily("keras.layers")


def regression(d, build, *shapes, batch=None, dtype="float32", below=0, rate=0.01, floor=0.0, **more):
    """A model of the layers that `build` puts between the inputs and the output, and labels of the output's shape. `below`: inputs are
    whole numbers below it. `floor`: gradients under it are what is left of larger terms that cancel (a bias before a batch
    normalization; the scores of an attention, all of them where there is one position), so they are compared in its units."""
    batch = batch or d.n(1, 7)
    xs = [K.Input(s, dtype=dtype) for s in shapes]
    y = build(*xs)
    data = [d.r.integers(0, below, (batch, *s)).astype("int32") if below else d.normal((batch, *s)) for s in shapes]
    return K.Model(xs, y), data, [d.normal((batch, *y.shape[1:]))], {"losses": [MSE], "optimizer": sgd(rate), "floor": floor, **more}


def mixed(d, x):
    """A layer in front, so that the gradient of the next one's input is seen; sometimes none."""
    return d.pick(x, L.Dense(d.n(1, 8))(x))


@case("dense", *range(8))
def dense(d, _):
    o = dict(units=d.n(1, 70), activation=d.pick(None, "relu", "sigmoid", "softmax", "gelu"), use_bias=d.pick(True, True, False))
    return regression(d, lambda x: L.Dense(**o)(mixed(d, x)), d.pick((d.n(1, 40),), d.shape((2, 3))))

@case("activation", "linear", "relu", "relu6", "leaky_relu", "elu", "selu", "sigmoid", "hard_sigmoid", "tanh", "softmax", "softplus", "softsign", "silu", "gelu", "exponential")
def activation(d, kind):
    inside = d.pick(True, False)  # of the layer, or a layer
    return regression(d, lambda x: L.Dense(d.n(2, 40), kind)(x) if inside else L.Activation(kind)(L.Dense(d.n(2, 40))(x)), d.shape(sizes=(2, 6)))

@case("re_lu", *range(4))
def re_lu(d, _):
    o = dict(max_value=d.pick(None, 1.0, 2.5), negative_slope=d.pick(0.0, 0.1, 0.3), threshold=d.pick(0.0, 0.5))
    return regression(d, lambda x: L.ReLU(**o)(L.Dense(d.n(1, 30))(x)), d.shape())

@case("softmax", *range(2))
def softmax(d, _):
    shape = d.shape((1, 3), (2, 6))
    return regression(d, lambda x: L.Softmax(axis=d.pick(-1, d.n(1, len(shape))))(L.Dense(d.n(2, 5))(x)), shape)

@case("conv2d", *range(14))
def conv2d(d, _):
    groups, dilation = d.pick(1, 1, 1, 2, 3), d.pick(1, 1, 1, (2, 1), (1, 3), 2)
    o = dict(filters=groups * d.n(1, 20), kernel_size=(d.n(1, 5), d.n(1, 5)), padding=d.pick("valid", "same"), strides=(d.n(1, 3), d.n(1, 3)) if dilation == 1 else 1,
             dilation_rate=dilation, groups=groups, activation=d.pick(None, "relu", "tanh"), use_bias=d.pick(True, False))
    channels, first = groups * d.n(1, 8), d.pick(True, False)
    return regression(d, lambda x: L.Conv2D(**o)(L.Dense(channels)(x) if first else x), (d.n(13, 20), d.n(13, 20), d.n(1, 4) if first else channels), batch=d.n(1, 3))

@case("conv_pool", *range(4))
def conv_pool(d, _):
    """Becomes one operator: convolution, ReLU, pooling."""
    f, k, p = d.n(3, 33), d.pick(1, 3, 5), d.pick(2, 3)
    return regression(d, lambda x: L.Dense(3)(L.Flatten()(L.MaxPooling2D(p)(L.Conv2D(f, k, activation="relu")(x)))), (d.n(10, 17), d.n(10, 17), d.pick(1, 3, 4)), batch=d.n(1, 4), rate=1e-3)

def pooling(d, kind):
    o = dict(pool_size=(d.n(1, 3), d.n(1, 4)), strides=d.pick(None, 1, (2, 3)), padding=d.pick("valid", "same"))
    return regression(d, lambda x: getattr(L, kind)(**o)(L.Conv2D(d.n(1, 5), 1)(x)), (d.n(5, 12), d.n(5, 12), d.n(1, 4)), batch=d.n(1, 3))
case("max_pooling2d", *range(4))(lambda d, _: pooling(d, "MaxPooling2D"))
case("average_pooling2d", *range(4))(lambda d, _: pooling(d, "AveragePooling2D"))

@case("global_average_pooling2d", *range(3))
def global_average(d, _):
    return regression(d, lambda x: L.GlobalAveragePooling2D(keepdims=d.pick(True, False))(L.Conv2D(d.n(1, 9), 2)(x)), (d.n(3, 9), d.n(3, 9), d.n(1, 4)))

@case("zero_padding2d", *range(3))
def zero_padding(d, _):
    padding = d.pick(d.n(0, 3), (d.n(0, 3), d.n(0, 3)), ((d.n(0, 3), d.n(0, 3)), (d.n(0, 3), d.n(0, 3))))
    return regression(d, lambda x: L.Conv2D(d.n(1, 5), d.n(1, 3))(L.ZeroPadding2D(padding)(L.Dense(d.n(1, 4))(x))), (d.n(3, 8), d.n(3, 8), d.n(1, 4)))

@case("flatten", *range(2))
def flatten(d, _):
    return regression(d, lambda x: L.Dense(d.n(1, 9))(L.Flatten()(mixed(d, x))), d.shape())

@case("reshape", *range(3))
def reshape(d, _):
    a, b, c = d.n(1, 5), d.n(1, 5), d.n(1, 5)
    target = d.pick((a * b * c,), (-1, a), (c, a, -1), (b, 1, a * c))
    return regression(d, lambda x: L.Dense(d.n(1, 9))(L.Reshape(target)(L.Dense(c)(x))), (a, b, d.n(1, 4)))

@case("dropout", *range(2))
def dropout_off(d, _):
    return regression(d, lambda x: L.Dense(d.n(1, 9))(L.Dropout(0.0)(L.Dense(d.n(1, 30))(x))), d.shape())

@case("dropout_inference", *range(2))
def dropout_inference(d, _):
    return regression(d, lambda x: L.Dense(d.n(1, 9))(L.Dropout(d.real(0.1, 0.9))(L.Dense(d.n(1, 30))(x))), d.shape(), inference=True)

@case("batch_normalization", *range(6))
def batch_normalization(d, _):
    o = dict(axis=d.pick(-1, -1, 1), momentum=d.pick(.99, .9, .5), epsilon=d.pick(1e-3, 1e-5), center=d.pick(True, False), scale=d.pick(True, False))
    return regression(d, lambda x: L.BatchNormalization(**o)(L.Dense(d.n(2, 5))(x)), d.shape(sizes=(2, 6)), batch=d.n(4, 9), floor=1.0)

@case("layer_normalization", *range(6))
def layer_normalization(d, _):
    shape = d.shape(sizes=(2, 6))
    o = dict(axis=d.pick(-1, 1, list(range(1, len(shape) + 1))), epsilon=d.pick(1e-3, 1e-5), center=d.pick(True, False), scale=d.pick(True, False))
    return regression(d, lambda x: L.LayerNormalization(**o)(L.Dense(d.n(2, 5))(x)), shape, floor=1.0)

@case("embedding", *range(4))
def embedding(d, _):
    count = d.n(3, 30)
    return regression(d, lambda x: L.Dense(d.n(1, 4))(L.Embedding(count, d.n(1, 20))(x)), d.shape((1, 2)), dtype=d.pick("int32", "float32"), below=count)

# Not key_dim 1: with as many heads as positions Keras 3.15.1 on TensorFlow adds a bias [heads, 1] along the positions
# (its add takes it for the bias of a channels-first image).
@case("attention", *[f"{kind}_{i}" for kind in ("causal", "full") for i in range(4)])
def attention(d, kind):
    o = dict(num_heads=d.n(1, 4), key_dim=d.n(2, 9), value_dim=d.pick(None, d.n(2, 6)), use_bias=d.pick(True, False), output_shape=d.pick(None, d.n(1, 9)))
    def build(x):
        q = L.Dense(d.n(2, 8))(x)
        return L.MultiHeadAttention(**o)(q, q, use_causal_mask=kind.startswith("causal"))
    return regression(d, build, (d.n(1, 9), d.n(1, 12)), batch=d.n(1, 4), floor=1.0)

@case("attention_cross", *range(3))
def attention_cross(d, _):
    o = dict(num_heads=d.n(1, 3), key_dim=d.n(2, 7))
    return regression(d, lambda q, v: L.MultiHeadAttention(**o)(q, v, use_causal_mask=d.pick(True, False)), (d.n(2, 6), d.n(1, 8)), (d.n(2, 6), d.n(1, 8)), batch=d.n(1, 4), floor=1.0)

@case("attention_key")
def attention_key(d):
    source = d.n(2, 6)
    return regression(d, lambda q, v, k: L.MultiHeadAttention(d.n(1, 3), d.n(2, 5))(q, v, k), (d.n(2, 6), d.n(1, 8)), (source, d.n(1, 8)), (source, d.n(1, 8)), floor=1.0)

# Keras's own CPU path; the fused one of TensorFlow is for GPUs.
@case("lstm", *range(8))
def lstm(d, _):
    o = dict(units=d.n(1, 20), activation=d.pick("tanh", "tanh", "relu"), recurrent_activation=d.pick("sigmoid", "hard_sigmoid"), use_bias=d.pick(True, True, False),
             return_sequences=d.pick(True, False), go_backwards=d.pick(True, False, False))
    return regression(d, lambda x: L.LSTM(**o)(mixed(d, x)), (d.n(1, 12), d.n(1, 9)))

@case("lstm_long")
def lstm_long(d):
    return regression(d, lambda x: L.LSTM(16)(x), (200, 8), batch=4)

@case("lstm_stacked", *range(2))
def lstm_stacked(d, _):
    return regression(d, lambda x: L.Dense(d.n(1, 4))(L.LSTM(d.n(2, 9))(L.LSTM(d.n(2, 9), return_sequences=True)(x))), (d.n(2, 9), d.n(1, 6)))

@case("lstm_states", *range(3))
def lstm_states(d, _):
    """An encoder whose states a decoder begins with."""
    units = d.n(1, 9)
    def build(a, b):
        _, h, c = L.LSTM(units, return_state=True)(a)
        return L.Dense(d.n(1, 4))(L.LSTM(units, return_sequences=True)(b, initial_state=[h, c]))
    return regression(d, build, (d.n(1, 7), d.n(1, 5)), (d.n(1, 7), d.n(1, 5)))

def masked(d, layers, shape, data):
    model = K.Sequential([K.Input(shape, dtype=data.dtype.name), *layers])
    return model, [data], [d.normal((len(data), *model.output_shape[1:]))], {"losses": [MSE], "optimizer": sgd(0.01), "floor": 0.0}

@case("lstm_masked", *range(4))
def lstm_masked(d, _):
    count, length = d.n(3, 6), d.n(2, 9)
    layers = [L.Embedding(count, d.n(1, 6), mask_zero=True), L.LSTM(d.n(1, 9), return_sequences=d.pick(True, False)), L.Dense(d.n(1, 4))]
    return masked(d, layers, (length,), d.r.integers(0, count, (d.n(1, 7), length)).astype("int32"))

@case("lstm_masking", *range(2))
def lstm_masking(d, _):
    length, width = d.n(3, 9), d.n(1, 4)
    x = d.normal((4, length, width))
    x[d.r.random(x.shape[:2]) < 0.3] = 0
    return masked(d, [L.Masking(), L.LSTM(d.n(1, 9), return_sequences=d.pick(True, False))], (length, width), x)

# Functional models with masks: Keras writes these into the JSON as operators, and calls layers with them.
def words_of(d, count, *shape):
    """Whole numbers of which some are 0, also at the ends, and of some sequences all."""
    x = d.r.integers(0, count, shape).astype("int32")
    for row in x[1:]:
        row[d.n(0, len(row)):] = 0
    return x

def with_masks(d, build, *words, count=7, width=4, **more):
    """`build` puts layers behind embeddings of these words, which mask 0."""
    xs = [K.Input(w.shape[1:], dtype="int32") for w in words]
    y = build(*[L.Embedding(count, width, mask_zero=True)(x) for x in xs])
    model = K.Model(xs, y)
    return model, list(words), [d.normal(model(list(words)).shape)], {"losses": [MSE], "optimizer": sgd(), "floor": 1.0, "metrics": [["mae"]], **more}

@case("attention_masked", *[f"{kind}_{i}" for kind in ("causal", "full") for i in range(3)])
def attention_masked(d, kind):
    o = dict(num_heads=d.n(1, 3), key_dim=d.n(2, 5))
    layers = lambda x: L.Dense(3)(L.MultiHeadAttention(**o)(x, x, use_causal_mask=kind.startswith("causal")))
    return with_masks(d, layers, words_of(d, 7, d.n(2, 5), d.n(3, 8)))

@case("attention_masked_cross", *range(4))
def attention_masked_cross(d, i):
    """Masks of the query, of value and key, of each alone."""
    batch, source = d.n(2, 4), d.n(3, 6)
    sides = [words_of(d, 7, batch, d.n(2, 5)), words_of(d, 7, batch, source), words_of(d, 7, batch, source)]
    bare = lambda x: L.Reshape(x.shape[1:])(x)  # which drops the mask
    layers = [lambda q, v, k: L.MultiHeadAttention(2, 3)(q, v, k), lambda q, v, k: L.MultiHeadAttention(2, 3)(bare(q), v, k),
              lambda q, v, k: L.MultiHeadAttention(2, 3)(q, bare(v), k, use_causal_mask=True), lambda q, v, k: L.MultiHeadAttention(2, 3)(bare(q), bare(v), k)][i]
    return with_masks(d, layers, *sides)

@case("attention_masked_dropout", *range(2))
def attention_masked_dropout(d, _):
    """A layer with dropout goes another way through Keras, which shows where a query may look at nothing."""
    layers = lambda x: L.Dense(2)(L.MultiHeadAttention(2, 3, dropout=0.3)(x, x, use_causal_mask=d.pick(True, False)))
    return with_masks(d, layers, words_of(d, 7, 4, d.n(3, 8)), inference=True)

@case("batch_normalization_masked", *range(4))
def batch_normalization_masked(d, _):
    o = dict(axis=d.pick(-1, -1, 1), momentum=d.pick(.99, .5), center=d.pick(True, False), scale=d.pick(True, False))
    return with_masks(d, lambda x: L.Dense(2)(L.BatchNormalization(**o)(L.Dense(3)(x))), words_of(d, 7, d.n(3, 6), d.n(3, 7)))

@case("layer_normalization_masked", *range(2))
def layer_normalization_masked(d, _):
    return with_masks(d, lambda x: L.LSTM(3, return_sequences=True)(L.LayerNormalization()(x)), words_of(d, 7, 3, d.n(3, 7)))

@case("merged_masks", "add", "add_one", "concatenate", "concatenate_one", "after", "after_one")
def merged_masks(d, kind):
    """What an LSTM behind the merged sequences counts; `one`: the other has no mask."""
    batch, steps = d.n(2, 5), d.n(2, 6)
    def build(a, b):
        if kind.endswith("one"): b = L.Reshape(b.shape[1:])(b)
        merge = L.Add() if kind.startswith("add") else L.Concatenate(axis=1 if kind.startswith("after") else -1)
        return L.LSTM(3, return_sequences=True)(merge([a, b]))
    return with_masks(d, build, words_of(d, 7, batch, steps), words_of(d, 7, batch, steps))

@case("lstm_masked_states", *range(2))
def lstm_masked_states(d, _):
    def build(a, b):
        _, h, c = L.LSTM(4, return_state=True)(a)
        return L.LSTM(4, return_sequences=True)(b, initial_state=[h, c])
    return with_masks(d, build, words_of(d, 7, 3, d.n(2, 6)), words_of(d, 7, 3, d.n(2, 6)))

@case("masked_metrics", *range(3))
def masked_metrics(d, i):
    """Means over what counts, in one batch and in several."""
    count, batch, steps, k = 6, 7, d.n(3, 8), d.n(2, 5)
    x = K.Input((steps,), dtype="int32")
    y = L.Dense(1 if i == 1 else k, "sigmoid" if i == 1 else "softmax")(L.Embedding(count, 4, mask_zero=True)(x))
    data = words_of(d, count, batch, steps)
    labels = d.r.integers(0, 2, (batch, steps, 1)).astype("float32") if i == 1 else np.eye(k, dtype="float32")[d.r.integers(0, k, (batch, steps))] if i == 2 else d.r.integers(0, k, (batch, steps)).astype("int32")
    return K.Model(x, y), [data], [labels], {"losses": [[SPARSE, {"class": "BinaryCrossentropy", "options": {}}, {"class": "CategoricalCrossentropy", "options": {}}][i]],
        "optimizer": sgd(), "metrics": [["accuracy"] + (["mae", "mse"] if i else [])], "evaluate_batch": 3}


# ---- dimensions that are None until data come

@case("open_sequences", *range(4))
def open_sequences(d, i):
    width, batch, steps = d.n(2, 6), d.n(2, 5), d.n(2, 9)
    x = K.Input((None, width))
    y = [lambda: L.Dense(d.n(1, 4))(L.LSTM(d.n(2, 7))(x)), lambda: L.Dense(3, "tanh")(x), lambda: L.LSTM(4, return_sequences=True)(L.LayerNormalization()(x)),
         lambda: L.Add()([x, L.MultiHeadAttention(2, 3)(x, x, use_causal_mask=True)])][i]()
    model, data = K.Model(x, y), d.normal((batch, steps, width))
    return model, [data], [d.normal(model(data).shape)], {"losses": [MSE], "optimizer": sgd(), "floor": 1.0, "metrics": [["mae"]]}

@case("open_images", *range(2))
def open_images(d, _):
    x = K.Input((None, None, 3))
    y = L.MaxPooling2D(2)(L.Conv2D(d.n(2, 6), 3, padding=d.pick("same", "valid"), activation="relu")(L.ZeroPadding2D(1)(x)))
    model, data = K.Model(x, L.Dense(2)(L.GlobalAveragePooling2D()(y))), d.normal((3, d.n(6, 12), d.n(6, 12), 3))
    return model, [data], [d.normal((3, 2))], {"losses": [MSE], "optimizer": sgd(), "floor": 0.1}

@case("open_batches", "labels", "masked")
def open_batches(d, kind):
    """Batches of several lengths, one after the other: what an epoch tells of them, and the weights behind three."""
    model = K.Sequential([K.Input((None,), dtype="int32"), L.Embedding(7, 4, mask_zero=kind == "masked"), L.LSTM(5, return_sequences=True), L.Dense(3, "softmax")])
    lengths = [d.n(2, 9) for _ in range(5)]
    batches = [(words_of(d, 7, d.n(2, 6), n) if kind == "masked" else d.r.integers(0, 7, (d.n(2, 6), n)).astype("int32")) for n in lengths]
    pairs = [(b, d.r.integers(0, 3, b.shape).astype("int32")) for b in batches]
    return model, [batches[0]], [pairs[0][1]], {"losses": [SPARSE], "optimizer": sgd(0.1), "metrics": [["accuracy"]], "batches": pairs}

@case("add", *range(2))
def add(d, _):
    rows, width = d.n(1, 6), d.n(1, 9)
    return regression(d, lambda a, b: L.Add()([L.Dense(width)(a), L.Dense(width)(b), a]), (rows, width), (rows, d.n(1, 6)))

@case("add_broadcast")
def add_broadcast(d):
    width = d.n(1, 9)
    return regression(d, lambda a, b: L.Add()([L.Dense(width)(a), L.Dense(width)(b)]), (d.n(2, 6), d.n(1, 6)), (d.n(1, 6),))

@case("concatenate", *range(3))
def concatenate(d, _):
    axis, rows, width = d.pick(-1, 1, 2), d.n(1, 6), d.n(1, 9)
    return regression(d, lambda a, b: L.Concatenate(axis=axis)([L.Dense(width)(a), L.Dense(d.n(1, 9) if axis != 1 else width)(b)]),
                      (rows, d.n(1, 6)), (d.n(1, 6) if axis == 1 else rows, d.n(1, 6)))

# Half types round after every operator, and not everybody's operators are the same: `near` is how far that may lead once.
# Keras's losses and learning rates stay float32 with the policy float64.
POLICIES = {"mixed_bfloat16": 0.03, "mixed_float16": 5e-3, "float64": 2e-6}

@case("policy", *[f"{p}-{kind}" for p in POLICIES for kind in ("sgd", "adam", "softmax", "norm", "conv") if (p, kind) != ("mixed_float16", "norm")])
def policy(d, of):
    """Loss scaling comes with mixed_float16 by itself, as compile() of Keras does it."""
    name, kind = of.split("-")
    K.config.set_dtype_policy(name)
    more = {"near": POLICIES[name], **({"near_outputs": 1e-12} if name == "float64" else {}), "optimizer": {"class": "Adam", "options": {"learning_rate": 1e-3}} if kind == "adam" else sgd()}
    if kind == "softmax":
        classes, batch = d.n(2, 9), d.n(4, 9)
        x = K.Input((d.n(3, 20),))
        model = K.Model(x, L.Dense(classes, "softmax")(L.Dense(d.n(3, 30), "relu")(x)))
        return model, [d.normal((batch, x.shape[1]))], [d.r.integers(0, classes, (batch,)).astype("int32")], {"losses": [SPARSE], "floor": 0.1, **more}
    if kind == "conv":
        return regression(d, lambda x: L.Dense(3)(L.Flatten()(L.MaxPooling2D(2)(L.Conv2D(d.n(3, 9), 3, activation="relu")(x)))), (d.n(8, 12), d.n(8, 12), 3), batch=2, **more)
    build = lambda x: L.Dense(d.n(1, 4))(L.BatchNormalization()(L.Dense(d.n(2, 9), "relu")(x)) if kind == "norm" else L.Dense(d.n(3, 40), "relu")(x))
    return regression(d, build, (d.n(3, 20),), batch=d.n(6, 12), **{**more, "floor": 1.0 if kind == "norm" else 0.1})

@case("shared_layer")
def shared_layer(d):
    inner = d.n(1, 7)
    def build(x):
        shared = L.Dense(d.n(1, 9), "tanh")
        return L.Dense(1)(L.Concatenate()([shared(x), shared(L.Dense(inner)(x))]))
    return regression(d, build, (inner,))

@case("nested")
def nested(d):
    """Models inside a model: one called twice, one of two inputs, and layers shared in an order of their own."""
    width = d.n(2, 7)
    chain = K.Sequential([K.Input((width,)), L.Dense(d.n(1, 9), "tanh"), L.Dense(width)])
    a, b = K.Input((width,)), K.Input((width,))
    pair = K.Model([a, b], L.Add()([L.Dense(3)(a), L.Dense(3)(b)]))
    shared = L.Dense(width)
    def build(x, y):
        late, early = shared(x), shared(y)
        return L.Dense(1)(L.Concatenate()([pair([chain(chain(early)), late]), late]))
    return regression(d, build, (width,), (width,))

@case("residual")
def residual(d):
    width = d.n(2, 10)
    def build(x):
        y = L.Dense(width, "relu")(x)
        for _ in range(3):
            z = L.BatchNormalization()(L.Dense(width)(y))
            y = L.Activation("relu")(L.Add()([y, z]))
        return L.Dense(2)(y)
    return regression(d, build, (d.n(2, 8),), batch=8, floor=1.0)

@case("transformer")
def transformer(d):
    words, heads, key = d.n(3, 20), d.n(1, 3), d.n(2, 5)
    def build(x):
        y = L.Embedding(words, heads * key)(x)
        for _ in range(2):
            z = L.LayerNormalization()(y)
            y = L.Add()([y, L.MultiHeadAttention(heads, key)(z, z, use_causal_mask=True)])
            y = L.Add()([y, L.Dense(heads * key)(L.Dense(16, "gelu")(L.LayerNormalization()(y)))])
        return L.Dense(3)(y)
    return regression(d, build, (d.n(2, 7),), dtype="int32", below=words, batch=3, floor=1.0)

@case("functional")
def functional(d):
    """For weight files: layers that hold layers, statistics that are not trained, two branches, names of one's own."""
    words = d.n(3, 20)
    def build(x):
        y = L.Embedding(words, 6, name="words")(x)
        z = L.MultiHeadAttention(2, 3, name="look")(y, y)
        a = L.BatchNormalization()(L.Dense(5)(z))
        b = L.BatchNormalization(name="second")(L.Dense(5, name="aside")(y))
        return L.Dense(2)(L.Concatenate()([L.Activation("relu")(a), b]))
    return regression(d, build, (d.n(3, 7),), dtype="int32", below=words, batch=6, floor=1.0)

@case("sequential")
def sequential(d):
    side, classes = d.n(9, 14), d.n(2, 7)
    model = K.Sequential([K.Input((side, side + 1, 2)), L.Conv2D(6, 3, activation="relu"), L.MaxPooling2D(), L.Conv2D(4, 2), L.BatchNormalization(), L.Activation("relu"), L.Flatten(), L.Dense(classes, "softmax")])
    return model, [d.normal((6, side, side + 1, 2))], [d.r.integers(0, classes, 6).astype("int32")], {"losses": [SPARSE], "optimizer": sgd(), "metrics": [["accuracy"]], "floor": 1.0}

@case("two_outputs")
def two_outputs(d):
    x = K.Input((6,), name="a")
    z = L.Dense(5, "relu")(x)
    model = K.Model([x], [L.Dense(3, "softmax", name="kind")(z), L.Dense(1, name="size")(z)])
    return model, [d.normal((7, 6))], [d.r.integers(0, 3, 7).astype("int32"), d.normal((7, 1))], {"losses": [SPARSE, MSE], "optimizer": sgd(), "metrics": [["accuracy"], ["mae"]]}

@case("named_outputs")
def named_outputs(d):
    x, z = K.Input((6,), name="a"), K.Input((3,), name="b")
    both = L.Dense(5, "relu")(L.Concatenate()([x, z]))
    model = K.Model([x, z], [L.Dense(3, "softmax", name="kind")(both), L.Dense(1, name="size")(both)])
    return model, [d.normal((7, 6)), d.normal((7, 3))], [d.r.integers(0, 3, 7).astype("int32"), d.normal((7, 1))], {
        "losses": [SPARSE, MSE], "optimizer": sgd(), "metrics": [["accuracy"], ["mae", "mse"]], "named": ["kind", "size"], "loss_weights": [0.3, 2.0]}

@case("learns_stripes")
def learns_stripes(d):
    """Images of stripes along or across, under noise: a small convolutional net learns to tell them apart."""
    count, side = 320, 12
    x = d.r.random((count, side, side, 1), dtype="float32")
    y = d.r.integers(0, 2, count).astype("int32")
    for i in range(count):
        at = (np.arange(side) % 3 == d.n(0, 2)).astype("float32") * 0.7
        x[i, :, :, 0] += at[:, None] if y[i] else at[None, :]
    model = K.Sequential([K.Input((side, side, 1)), L.Conv2D(8, 3, activation="relu"), L.MaxPooling2D(), L.Flatten(), L.Dense(2, "softmax")])
    return model, [x], [y], {"losses": [SPARSE], "optimizer": {"class": "Adam", "options": {"learning_rate": 0.005}},
                             "metrics": [["accuracy"]], "fit": {"epochs": 12, "batch_size": 24, "validation_split": 0.2}, "learns": 0.95}


# ---- losses: every one, from logits and from probabilities, with awkward label shapes

LABELS = {
    "real": lambda d, s, k: d.normal((*s, k)),
    "real, flat": lambda d, s, k: d.normal(s),
    "binary": lambda d, s, k: d.r.integers(0, 2, (*s, k)).astype("float32"),
    "binary, flat": lambda d, s, k: d.r.integers(0, 2, s).astype("float32"),
    "one hot": lambda d, s, k: np.eye(k, dtype="float32")[d.r.integers(0, k, s)],
    "class": lambda d, s, k: d.r.integers(0, k, s).astype("int32"),
    "class, a column": lambda d, s, k: d.r.integers(0, k, (*s, 1)).astype("int64"),
}

def loss_case(d, kind, options, activation, labels, metrics, units=None):
    k, extra = units or d.n(2, 9), d.pick((), (d.n(1, 5),)) if "flat" not in labels and "column" not in labels else ()
    shape, width = (d.n(3, 9), *extra), d.n(1, 8)
    x = K.Input((*extra, width))
    y = L.Dense(k, activation)(L.Dense(7, "tanh")(x))
    # Keras on TensorFlow remembers the logits of any softmax or sigmoid and uses them in any crossentropy, sigmoid's for
    # a softmax and the other way round. We take such a prediction for the probabilities it is; ReLU makes Keras forget.
    if (activation, kind[:6]) in (("softmax", "Binary"), ("sigmoid", "Catego"), ("sigmoid", "Sparse")):
        y = L.ReLU()(y)
    return K.Model(x, y), [d.normal((*shape, width))], [LABELS[labels](d, shape, k)], {
        "losses": [{"class": kind, "options": options(d)}], "optimizer": sgd(), "metrics": [metrics]}

plain, from_logits, smoothed = lambda d: {}, lambda d: {"from_logits": True}, lambda d: {"label_smoothing": d.real(0.05, 0.4)}
smoothed_logits = lambda d: {**from_logits(d), **smoothed(d)}
for i, row in enumerate([
        ("MeanSquaredError", plain, None, "real", ["mae", "mse"]),
        ("MeanSquaredError", plain, None, "real, flat", ["mae"], 1),
        ("MeanAbsoluteError", plain, "tanh", "real", ["mse"]),
        ("MeanAbsoluteError", plain, None, "real, flat", ["mse"], 1),
        ("BinaryCrossentropy", plain, "sigmoid", "binary", ["accuracy"], 1),
        ("BinaryCrossentropy", plain, "sigmoid", "binary, flat", ["accuracy"], 1),
        ("BinaryCrossentropy", smoothed, "sigmoid", "binary", ["binary_accuracy"]),
        ("BinaryCrossentropy", from_logits, None, "binary", []),
        ("BinaryCrossentropy", smoothed_logits, None, "binary", ["binary_accuracy"]),
        ("BinaryCrossentropy", plain, "softmax", "binary", []),
        ("CategoricalCrossentropy", plain, "softmax", "one hot", ["accuracy"]),
        ("CategoricalCrossentropy", smoothed, "softmax", "one hot", ["categorical_accuracy"]),
        ("CategoricalCrossentropy", from_logits, None, "one hot", ["accuracy"]),
        ("CategoricalCrossentropy", smoothed_logits, None, "one hot", ["categorical_accuracy"]),
        ("CategoricalCrossentropy", plain, "sigmoid", "one hot", []),
        ("SparseCategoricalCrossentropy", plain, "softmax", "class", ["accuracy"]),
        ("SparseCategoricalCrossentropy", plain, "softmax", "class, a column", ["sparse_categorical_accuracy"]),
        ("SparseCategoricalCrossentropy", from_logits, None, "class", ["accuracy"]),
        ("SparseCategoricalCrossentropy", plain, "sigmoid", "class", [])]):
    case(f"loss_{i}_{row[0]}")(lambda d, row=row: loss_case(d, *row))


# ---- metrics that are counted over an epoch

def counted(d):
    """Every metric that counts, with its defaults and with drawn options, on numbers that no threshold of theirs hits."""
    return [
        "auc", {"class": "AUC", "options": {"name": "pr", "curve": "PR"}},
        {"class": "AUC", "options": {"name": "few", "num_thresholds": d.n(2, 40)}},
        {"class": "AUC", "options": {"name": "minoring", "summation_method": "minoring", "curve": d.pick("ROC", "PR")}},
        {"class": "AUC", "options": {"name": "majoring", "summation_method": "majoring", "curve": d.pick("ROC", "PR")}},
        {"class": "Precision", "options": {"name": "precision"}}, {"class": "Precision", "options": {"name": "strict", "thresholds": round(d.real(0.51, 0.7), 3)}},
        {"class": "Precision", "options": {"name": "nothing_called", "thresholds": 0.9999}},
        {"class": "Recall", "options": {"name": "recall"}}, {"class": "Recall", "options": {"name": "lax", "thresholds": round(d.real(0.3, 0.49), 3)}}]


@case("metrics", "column", "labels")
def metrics_case(d, kind):
    width, samples, units = d.n(3, 9), d.n(50, 90), 1 if kind == "column" else d.n(2, 5)
    x = K.Input((width,))
    labels = d.r.integers(0, 2, (samples,) if kind == "column" else (samples, units)).astype("float32")
    return K.Model(x, L.Dense(units, "sigmoid")(x)), [d.normal((samples, width))], [labels], {
        "losses": [{"class": "BinaryCrossentropy", "options": {}}], "optimizer": sgd(), "metrics": [counted(d)], "evaluate_batch": 16}


@case("metrics_logits")
def metrics_logits(d):
    x = K.Input((4,))
    return K.Model(x, L.Dense(1)(x)), [d.normal((61, 4))], [d.r.integers(0, 2, (61, 1)).astype("float32")], {
        "losses": [{"class": "BinaryCrossentropy", "options": {"from_logits": True}}], "optimizer": sgd(), "evaluate_batch": 8,
        "metrics": [[{"class": "AUC", "options": {"name": "auc", "from_logits": True}}, {"class": "AUC", "options": {"name": "pr", "from_logits": True, "curve": "PR"}}]]}


@case("metrics_learning")
def metrics_learning(d):
    """A metric begins anew with each epoch, in training and in validating, with a shorter last batch in both."""
    x = d.normal((250, 6))
    model = K.Sequential([K.Input((6,)), L.Dense(8, "tanh"), L.Dense(1, "sigmoid")])
    return model, [x], [(x[:, :1] + 0.5 * x[:, 1:2] > 0.1).astype("float32")], {
        "losses": [{"class": "BinaryCrossentropy", "options": {}}], "optimizer": {"class": "Adam", "options": {"learning_rate": 0.02}},
        "metrics": [["accuracy", "auc", {"class": "AUC", "options": {"name": "pr", "curve": "PR"}}, {"class": "Precision", "options": {"name": "precision"}},
                     {"class": "Recall", "options": {"name": "recall"}}]],
        "fit": {"epochs": 5, "batch_size": 32, "validation_split": 0.2}, "learns": 0.85}


# ---- optimizers on one small network: their defaults, then drawn options

OPTIMIZERS = {
    "sgd": ("SGD", lambda d: {}),
    "sgd_rate": ("SGD", lambda d: {"learning_rate": d.real(0.01, 0.1)}),
    "sgd_momentum": ("SGD", lambda d: {"learning_rate": d.real(0.005, 0.03), "momentum": d.real(0.5, 0.95)}),
    "sgd_nesterov": ("SGD", lambda d: {"learning_rate": d.real(0.005, 0.03), "momentum": d.real(0.5, 0.95), "nesterov": True}),
    "sgd_decay": ("SGD", lambda d: {"learning_rate": 0.02, "momentum": d.pick(0.0, 0.9), "weight_decay": d.real(0.01, 0.2)}),
    "adam": ("Adam", lambda d: {}),
    "adam_betas": ("Adam", lambda d: {"learning_rate": d.real(0.001, 0.02), "beta_1": d.real(0.5, 0.95), "beta_2": d.real(0.9, 0.9999), "epsilon": d.pick(1e-4, 1e-6)}),
    "adam_decay": ("Adam", lambda d: {"weight_decay": d.real(0.001, 0.1)}),
    "adamw": ("AdamW", lambda d: {}),
    "adamw_decay": ("AdamW", lambda d: {"learning_rate": d.real(0.001, 0.02), "weight_decay": d.real(0.001, 0.1)}),
    "rmsprop": ("RMSprop", lambda d: {}),
    "rmsprop_momentum": ("RMSprop", lambda d: {"learning_rate": d.real(0.001, 0.01), "rho": d.real(0.5, 0.95), "momentum": d.real(0.5, 0.9), "weight_decay": d.real(0.01, 0.1)}),
    "rmsprop_centered": ("RMSprop", lambda d: {"learning_rate": d.real(0.001, 0.01), "centered": True, "momentum": d.pick(0.0, 0.9), "epsilon": 1e-3}),
    "lion": ("Lion", lambda d: {}),
    "lion_betas": ("Lion", lambda d: {"learning_rate": d.real(0.001, 0.01), "beta_1": d.real(0.5, 0.95), "beta_2": d.real(0.8, 0.999), "weight_decay": d.real(0.01, 0.1)}),
    "adagrad": ("Adagrad", lambda d: {}),
    "adagrad_rate": ("Adagrad", lambda d: {"learning_rate": d.real(0.01, 0.1), "initial_accumulator_value": d.real(0.01, 1.0), "epsilon": d.pick(1e-4, 1e-6), "weight_decay": d.real(0.01, 0.1)}),
    "nadam": ("Nadam", lambda d: {}),
    "nadam_betas": ("Nadam", lambda d: {"learning_rate": d.real(0.001, 0.02), "beta_1": d.real(0.5, 0.95), "beta_2": d.real(0.9, 0.9999), "epsilon": d.pick(1e-4, 1e-6)}),
    # these gradients have norms of about 1 and elements of up to 2, so all of these but one do clip
    "clipnorm": ("SGD", lambda d: {"learning_rate": 0.02, "clipnorm": d.real(0.1, 1.0)}),
    "clipnorm_none": ("Adam", lambda d: {"clipnorm": 1000.0}),
    "clipvalue": ("RMSprop", lambda d: {"clipvalue": d.real(0.01, 0.1)}),
    "clipvalue_adam": ("Adam", lambda d: {"learning_rate": 0.01, "clipvalue": d.real(0.01, 0.1), "weight_decay": 0.01}),
    "global_clipnorm": ("SGD", lambda d: {"learning_rate": 0.02, "momentum": 0.9, "global_clipnorm": d.real(0.1, 1.0)}),
    "global_clipnorm_adam": ("AdamW", lambda d: {"learning_rate": 0.01, "global_clipnorm": d.real(0.1, 1.0)}),
    "adamw_betas": ("AdamW", lambda d: {"learning_rate": d.real(0.001, 0.02), "beta_1": d.real(0.5, 0.95), "beta_2": d.real(0.9, 0.9999), "epsilon": d.pick(1e-4, 1e-6)}),
}

@case("optimizer", *OPTIMIZERS)
def optimizer(d, name):
    kind, options = OPTIMIZERS[name]
    width, batch, out = d.n(1, 12), d.n(1, 9), d.n(1, 4)
    x = K.Input((width,))
    return K.Model(x, L.Dense(out)(L.Dense(d.n(2, 40), "tanh")(x))), [d.normal((batch, width))], [d.normal((batch, out))], {
        "losses": [MSE], "optimizer": {"class": kind, "options": options(d)}}


# ---- what is drawn anew each time can agree in distribution only: first weights, and what dropout keeps

INITIALIZERS = {
    "RandomUniform": lambda d: {"minval": d.real(-0.5, -0.1), "maxval": d.real(0.1, 0.5)},
    "RandomNormal": lambda d: {"mean": d.real(-1, 1), "stddev": d.real(0.01, 1)},
    "TruncatedNormal": lambda d: {"mean": d.real(-1, 1), "stddev": d.real(0.01, 1)},
    "VarianceScaling": lambda d: {"scale": d.real(0.5, 3), "mode": d.pick("fan_in", "fan_out", "fan_avg"), "distribution": d.pick("uniform", "untruncated_normal", "truncated_normal")},
    "Constant": lambda d: {"value": d.real(-2, 2)},
    "Zeros": plain, "Ones": plain, "GlorotUniform": plain, "GlorotNormal": plain, "HeUniform": plain, "HeNormal": plain, "LecunUniform": plain, "LecunNormal": plain,
}

@case("initializer", *INITIALIZERS)
def initializer(d, kind):
    made = getattr(K.initializers, kind)(**INITIALIZERS[kind](d))
    o = dict(kernel_initializer=made, use_bias=False)
    x = K.Input((d.n(4, 9), 5, d.n(40, 60)))
    layer = d.pick(L.Dense(d.n(400, 600), **o), L.Conv2D(d.n(40, 60), (d.n(2, 4), 3), **o))
    return K.Model(x, layer(x)), [], [], {"statistics": "weights"}

@case("initializer_default", "Dense", "Conv2D", "Embedding", "MultiHeadAttention", "BatchNormalization", "LayerNormalization")
def initializer_default(d, kind):
    x = K.Input((9, 9, d.n(40, 60)))
    if kind == "Embedding":
        x = K.Input((3,), dtype="int32")
        y = L.Embedding(d.n(300, 600), d.n(40, 60))(x)
    elif kind == "MultiHeadAttention":
        x = K.Input((3, d.n(40, 60)))
        y = L.MultiHeadAttention(d.n(4, 8), d.n(20, 60))(x, x)
    else:
        y = L.Dense(d.n(400, 600))(x) if kind == "Dense" else L.Conv2D(d.n(40, 60), 3)(x) if kind == "Conv2D" else getattr(L, kind)()(x)
    return K.Model(x, y), [], [], {"statistics": "weights"}

@case("dropout_statistics", *range(3))
def dropout_statistics(d, _):
    x = K.Input((d.n(100, 300),))
    return K.Model(x, L.Dropout(d.real(0.05, 0.9))(x)), [np.ones((200, *x.shape[1:]), "float32")], [], {"statistics": "outputs"}


if __name__ == "__main__":
    main()
