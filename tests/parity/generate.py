"""Writes what Keras (TensorFlow) computes, for the C++ runner to compare with: one folder a case with the model's JSON,
case.json and .npy files (weights, inputs, labels, outputs, gradients, weights after ten steps). Nothing of it is committed.

usage: generate.py FOLDER [--seed N] [--only TEXT]
"""
import argparse, json, os, pathlib, shutil, sys
os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import logging, numpy as np
logging.getLogger("tensorflow").setLevel(logging.ERROR)

STEPS = 10


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    stamp = options.folder / "stamp"
    want = f"{options.seed} {options.only} {pathlib.Path(__file__).stat().st_mtime_ns}"
    if stamp.exists() and stamp.read_text() == want:
        print("parity: cases are there already")
        return
    import keras, tensorflow as tf
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    names = []
    for name, make in cases(options.seed):
        if options.only in name:
            keras.utils.clear_session()
            write(options.folder / name, make, np.random.default_rng([options.seed, len(names)]))
            names.append(name)
            if sys.stdout.isatty():
                print(f"\rparity: {len(names)} cases, {name:<40}", end="", flush=True)
    stamp.write_text(want)
    print(f"\rparity: {len(names)} cases from Keras {keras.__version__} on TensorFlow {tf.__version__} in {options.folder}")


def write(folder, make, r):
    import keras, tensorflow as tf
    model, xs, ys, compiled = make(r)
    folder.mkdir()
    for w in model.weights:
        into = int(np.prod(w.shape[:-1])) if len(w.shape) > 1 else 4
        v = r.normal(0, into ** -0.5, w.shape).astype("float32")
        if "variance" in w.path or "gamma" in w.path:
            v = np.abs(v) + 0.5
        w.assign(v)
    save = lambda name, a: np.save(folder / name, np.ascontiguousarray(a))
    (folder / "model.json").write_text(model.to_json())
    for i, x in enumerate(xs): save(f"x{i}", x)
    for i, y in enumerate(ys): save(f"y{i}", y)
    for i, w in enumerate(model.get_weights()): save(f"w{i}", w)
    model.save_weights(folder / "keras.weights.h5")
    one = lambda a: a[0] if len(a) == 1 else list(a)
    out = model.predict(one(xs), batch_size=len(xs[0]), verbose=0)
    outs = out if isinstance(out, list) else [out]
    for i, o in enumerate(outs): save(f"out{i}", o)

    optimizer = getattr(keras.optimizers, compiled["optimizer"]["class"])(**compiled["optimizer"]["options"])
    losses = [getattr(keras.losses, l["class"])(**l["options"]) for l in compiled["losses"]]
    metrics = compiled.get("metrics", [[] for _ in outs])
    model.compile(optimizer, one(losses), metrics=metrics[0] if len(outs) == 1 else metrics, jit_compile=False)

    @tf.function
    def gradients(x, y):
        with tf.GradientTape() as tape:
            loss = model.compute_loss(x, y, model(x, training=True))
        return loss, tape.gradient(loss, [v.value for v in model.trainable_variables])

    before = model.get_weights()
    X, Y = one([tf.constant(x) for x in xs]), one([tf.constant(y) for y in ys])
    if model.trainable_variables:
        loss, grads = gradients(X, Y)
        for i, g in enumerate(grads): save(f"g{i}", np.zeros(model.trainable_variables[i].shape, "float32") if g is None else tf.convert_to_tensor(g).numpy())
    model.set_weights(before)  # moving averages have moved
    evaluated = model.evaluate(one(xs), one(ys), batch_size=len(xs[0]), verbose=0, return_dict=True)
    if "fit" in compiled:  # whole epochs in a fixed order instead of ten steps
        history = model.fit(one(xs), one(ys), shuffle=False, verbose=0, **compiled["fit"]).history
        (folder / "case.json").write_text(json.dumps(dict(compiled, metrics=metrics, inputs=len(xs), outputs=len(outs), weights=len(before), history=history), indent=1))
        return
    curve = []
    for _ in range(STEPS if model.trainable_variables else 0):
        curve.append(float(model.train_on_batch(one(xs), one(ys), return_dict=True)["loss"]))
        model.reset_metrics()
    for i, w in enumerate(model.get_weights()): save(f"t{i}", w)
    case = dict(compiled, metrics=metrics, inputs=len(xs), outputs=len(outs), weights=len(before), trainable=len(model.trainable_variables),
                names=[w.path for w in model.weights], curve=curve, evaluated={k: float(v) for k, v in evaluated.items()})
    (folder / "case.json").write_text(json.dumps(case, indent=1))


# ---- what is drawn: shapes and options of every layer, loss and optimizer

MSE = [{"class": "MeanSquaredError", "options": {}}]
SGD = {"class": "SGD", "options": {"learning_rate": 0.01}}


def cases(seed):
    import keras
    from keras import layers as L
    draw = np.random.default_rng(seed)
    pick = lambda *a: a[int(draw.integers(len(a)))]
    n = lambda low, high: int(draw.integers(low, high + 1))
    normal = lambda r, shape: r.normal(0, 1, shape).astype("float32")

    def regression(build, shapes, batch=None, dtype="float32", inputs=None, rate=0.01, floor=0.0):
        """The layers between inputs and output, and labels of the output's shape. `floor`: gradients below it are what is left of
        larger terms that cancel (a bias before a batch normalization), so they are compared in its units."""
        batch = batch or n(1, 7)
        def make(r):
            xs = [keras.Input(s, dtype=dtype) for s in shapes]
            y = build(xs[0] if len(xs) == 1 else xs)
            model = keras.Model(xs, y)
            data = [inputs(r, (batch, *s)) if inputs else normal(r, (batch, *s)) for s in shapes]
            return model, data, [normal(r, (batch, *y.shape[1:]))], {"losses": MSE, "optimizer": {"class": "SGD", "options": {"learning_rate": rate}}, "floor": floor}
        return make

    activations = ["linear", "relu", "relu6", "leaky_relu", "elu", "selu", "sigmoid", "hard_sigmoid", "tanh", "softmax", "softplus", "softsign", "silu", "gelu", "exponential"]
    for i in range(5):
        shape = pick((n(1, 40),), (n(1, 40),), (n(1, 5), n(1, 20)), (n(1, 3), n(1, 4), n(1, 9)))
        o = dict(units=n(1, 70), activation=pick(None, "relu", "sigmoid", "softmax", "gelu"), use_bias=pick(True, True, False))
        yield f"dense_{i}", regression(lambda x, o=o: L.Dense(**o)(x), [shape])
    for a in activations:
        yield f"activation_{a}", regression(lambda x, a=a: L.Activation(a)(L.Dense(6)(x)), [(n(2, 9),)], batch=5)
    for i in range(10):
        groups = pick(1, 1, 1, 2, 3)
        dilation = pick(1, 1, 1, (2, 1), 2)
        o = dict(filters=groups * n(1, 20), kernel_size=(n(1, 5), n(1, 5)), padding=pick("valid", "same"), strides=(n(1, 3), n(1, 3)) if dilation == 1 else 1,
                 dilation_rate=dilation, groups=groups, activation=pick(None, "relu"), use_bias=pick(True, False))
        shape = (n(9, 20), n(9, 20), groups * n(1, 8))
        yield f"conv2d_{i}", regression(lambda x, o=o: L.Conv2D(**o)(x), [shape], batch=n(1, 3))
    for i in range(3):  # the fused path: convolution, relu, pooling, dense
        f, k, p = n(3, 33), pick(1, 3, 5), pick(2, 3)
        yield f"conv_pool_{i}", regression(lambda x, f=f, k=k, p=p: L.Dense(3)(L.Flatten()(L.MaxPooling2D(p)(L.Conv2D(f, k, activation="relu")(x)))), [(n(10, 17), n(10, 17), pick(1, 3, 4))], batch=n(1, 4), rate=1e-3)
    for kind in ("MaxPooling2D", "AveragePooling2D"):
        for i in range(4):
            o = dict(pool_size=(n(1, 3), n(1, 4)), strides=pick(None, 1, (2, 3)), padding=pick("valid", "same"))
            yield f"{kind.lower()}_{i}", regression(lambda x, o=o, kind=kind: getattr(L, kind)(**o)(L.Conv2D(n(1, 5), 1)(x)), [(n(5, 12), n(5, 12), n(1, 4))], batch=n(1, 3))
    for keep in (False, True):
        yield f"global_average_{keep}", regression(lambda x, k=keep: L.GlobalAveragePooling2D(keepdims=k)(L.Conv2D(3, 2)(x)), [(n(3, 7), n(3, 7), 2)])
    yield "zero_padding", regression(lambda x: L.Conv2D(3, 3)(L.ZeroPadding2D(((1, 2), (3, 0)))(L.Dense(2)(x))), [(5, 4, 3)])
    yield "reshape", regression(lambda x: L.Dense(3)(L.Reshape((-1, 4))(L.Dense(8)(x))), [(3, 5)])
    for i in range(4):
        axis = pick(-1, -1, 1)
        shape = pick((n(2, 9),), (n(2, 5), n(2, 6)), (n(2, 4), n(2, 4), n(1, 9)))
        o = dict(axis=axis, momentum=pick(.99, .9, .5), epsilon=pick(1e-3, 1e-5), center=pick(True, False), scale=pick(True, False))
        yield f"batch_normalization_{i}", regression(lambda x, o=o: L.BatchNormalization(**o)(L.Dense(n(2, 5))(x)), [shape], batch=n(4, 9), floor=1.0)
    for i in range(5):
        shape = pick((n(2, 9),), (n(2, 5), n(2, 6)), (n(2, 4), n(2, 4), n(2, 9)))
        axis = pick(-1, 1, list(range(1, len(shape) + 1)))
        o = dict(axis=axis, epsilon=pick(1e-3, 1e-5), center=pick(True, False), scale=pick(True, False))
        yield f"layer_normalization_{i}", regression(lambda x, o=o: L.LayerNormalization(**o)(L.Dense(n(2, 5))(x)), [shape], floor=1.0)
    for i, o in enumerate((dict(), dict(max_value=1.0), dict(negative_slope=0.1), dict(threshold=0.5, negative_slope=0.2, max_value=2.0))):
        yield f"re_lu_{i}", regression(lambda x, o=o: L.ReLU(**o)(L.Dense(9)(x)), [(7,)])
    yield "softmax_axis", regression(lambda x: L.Softmax(axis=1)(L.Dense(3)(x)), [(4, 5)])
    for i in range(3):
        count, width = n(3, 30), n(1, 20)
        yield f"embedding_{i}", regression(lambda x, c=count, w=width: L.Dense(2)(L.Embedding(c, w)(x)), [pick((n(1, 6),), (2, 3))], dtype=pick("int32", "float32"),
                                           inputs=lambda r, s, c=count: r.integers(0, c, s).astype("int32"))
    # Not key_dim 1: with as many heads as positions Keras 3.15.1 on TensorFlow adds a bias [heads, 1] along the positions
    # (its add takes it for the bias of a channels-first image).
    for i in range(7):
        o = dict(num_heads=n(1, 4), key_dim=n(2, 9), value_dim=pick(None, n(2, 6)), use_bias=pick(True, False), output_shape=pick(None, n(1, 9)))
        causal, width, t = pick(True, False), n(1, 12), n(1, 9)
        yield f"attention_{i}", regression(lambda x, o=o, c=causal: (lambda q: L.MultiHeadAttention(**o)(q, q, use_causal_mask=c))(L.Dense(n(2, 8))(x)), [(t, width)], batch=n(1, 4))
    for i in range(3):
        o = dict(num_heads=n(1, 3), key_dim=n(2, 7))
        causal, t, s = pick(True, False), n(2, 6), n(2, 6)
        yield f"attention_cross_{i}", regression(lambda x, o=o, c=causal: L.MultiHeadAttention(**o)(x[0], x[1], use_causal_mask=c), [(t, n(1, 8)), (s, n(1, 8))], batch=n(1, 4))
    yield "attention_key", regression(lambda x: L.MultiHeadAttention(2, 3)(x[0], x[1], x[2]), [(4, 5), (6, 3), (6, 7)])
    yield "add", regression(lambda x: L.Add()([L.Dense(4)(x[0]), L.Dense(4)(x[1]), x[0]]), [(5, 4), (5, 3)])
    yield "add_broadcast", regression(lambda x: L.Add()([L.Dense(4)(x[0]), L.Dense(4)(x[1])]), [(5, 4), (3,)])
    for axis in (-1, 1):
        yield f"concatenate_{axis}", regression(lambda x, a=axis: L.Concatenate(axis=a)([L.Dense(4)(x[0]), L.Dense(4)(x[1])]), [(5, 4), (5, 3)])

    def shared(x):
        d = L.Dense(6, "tanh")
        return L.Dense(1)(L.Concatenate()([d(x), d(L.Dense(5)(x))]))
    yield "shared_layer", regression(shared, [(5,)])
    def residual(x):
        y = L.Dense(8, "relu")(x)
        for _ in range(3):
            z = L.BatchNormalization()(L.Dense(8)(y))
            y = L.Activation("relu")(L.Add()([y, z]))
        return L.Dense(2)(y)
    yield "residual", regression(residual, [(6,)], batch=8, floor=1.0)
    def transformer(x):
        y = L.Embedding(11, 8)(x)
        for _ in range(2):
            z = L.LayerNormalization()(y)
            y = L.Add()([y, L.MultiHeadAttention(2, 4)(z, z, use_causal_mask=True)])
            y = L.Add()([y, L.Dense(8)(L.Dense(16, "gelu")(L.LayerNormalization()(y)))])
        return L.Dense(3)(y)
    yield "transformer", regression(transformer, [(5,)], dtype="int32", inputs=lambda r, s: r.integers(0, 11, s).astype("int32"), batch=3)
    def sequential(r):
        model = keras.Sequential([keras.Input((12, 11, 2)), L.Conv2D(6, 3, activation="relu"), L.MaxPooling2D(), L.Conv2D(4, 2), L.BatchNormalization(), L.Activation("relu"), L.Flatten(), L.Dense(5, "softmax")])
        return model, [normal(r, (6, 12, 11, 2))], [r.integers(0, 5, 6).astype("int32")], {"losses": [{"class": "SparseCategoricalCrossentropy", "options": {}}], "optimizer": SGD, "metrics": [["accuracy"]]}
    yield "sequential", sequential

    def stripes(r):
        """Images of stripes along or across, under noise: a small convolutional net learns to tell them apart."""
        count, side = 320, 12
        x = r.random((count, side, side, 1), dtype="float32")
        y = r.integers(0, 2, count).astype("int32")
        for i in range(count):
            at = (np.arange(side) % 3 == r.integers(3)).astype("float32") * 0.7
            x[i, :, :, 0] += at[:, None] if y[i] else at[None, :]
        model = keras.Sequential([keras.Input((side, side, 1)), L.Conv2D(8, 3, activation="relu"), L.MaxPooling2D(), L.Flatten(), L.Dense(2, "softmax")])
        return model, [x], [y], {"losses": [{"class": "SparseCategoricalCrossentropy", "options": {}}], "optimizer": {"class": "Adam", "options": {"learning_rate": 0.005}},
                                 "metrics": [["accuracy"]], "fit": {"epochs": 12, "batch_size": 24, "validation_split": 0.2}}
    yield "learns_stripes", stripes

    # Losses: every one, from logits and from probabilities, with awkward label shapes.
    def loss_case(name, options, activation, units, label, metrics, extra=()):
        def make(r):
            batch = n(3, 9)
            x = keras.Input((*extra, 6))
            y = L.Dense(units, activation)(L.Dense(7, "tanh")(x))
            # Keras on TensorFlow remembers the logits of any softmax or sigmoid and uses them in any crossentropy, sigmoid's for
            # a softmax and the other way round. We take such a prediction for the probabilities it is; ReLU makes Keras forget.
            if (activation, name[:6]) in (("softmax", "Binary"), ("sigmoid", "Catego"), ("sigmoid", "Sparse")):
                y = L.ReLU()(y)
            model = keras.Model(x, y)
            return model, [normal(r, (batch, *extra, 6))], [label(r, (batch, *extra))], {"losses": [{"class": name, "options": options}], "optimizer": SGD, "metrics": [metrics]}
        return make
    binary = lambda k: lambda r, s: r.integers(0, 2, (*s, k)).astype("float32")
    flat_binary = lambda r, s: r.integers(0, 2, s).astype("float32")
    one_hot = lambda k: lambda r, s: np.eye(k, dtype="float32")[r.integers(0, k, s)]
    sparse = lambda k: lambda r, s: r.integers(0, k, s).astype("int32")
    sparse_1 = lambda k: lambda r, s: r.integers(0, k, (*s, 1)).astype("int64")
    real = lambda k: lambda r, s: normal(r, (*s, k))
    for i, (name, o, a, units, label, metrics, extra) in enumerate([
            ("MeanSquaredError", {}, None, 3, real(3), ["mae", "mse"], ()),
            ("MeanSquaredError", {}, None, 1, lambda r, s: normal(r, s), ["mae"], ()),
            ("MeanAbsoluteError", {}, "tanh", 4, real(4), ["mse"], (5,)),
            ("BinaryCrossentropy", {}, "sigmoid", 1, binary(1), ["accuracy"], ()),
            ("BinaryCrossentropy", {}, "sigmoid", 1, flat_binary, ["accuracy"], ()),
            ("BinaryCrossentropy", {"label_smoothing": 0.2}, "sigmoid", 4, binary(4), ["binary_accuracy"], ()),
            ("BinaryCrossentropy", {"from_logits": True}, None, 3, binary(3), [], ()),
            ("BinaryCrossentropy", {}, "softmax", 3, binary(3), [], ()),
            ("CategoricalCrossentropy", {}, "softmax", 5, one_hot(5), ["accuracy"], ()),
            ("CategoricalCrossentropy", {"label_smoothing": 0.1}, "softmax", 5, one_hot(5), ["categorical_accuracy"], (3,)),
            ("CategoricalCrossentropy", {"from_logits": True}, None, 4, one_hot(4), ["accuracy"], ()),
            ("CategoricalCrossentropy", {}, "sigmoid", 4, one_hot(4), [], ()),
            ("SparseCategoricalCrossentropy", {}, "softmax", 6, sparse(6), ["accuracy"], ()),
            ("SparseCategoricalCrossentropy", {}, "softmax", 6, sparse_1(6), ["sparse_categorical_accuracy"], ()),
            ("SparseCategoricalCrossentropy", {}, "softmax", 6, sparse(6), ["accuracy"], (4,)),
            ("SparseCategoricalCrossentropy", {"from_logits": True}, None, 7, sparse(7), ["accuracy"], ()),
            ("SparseCategoricalCrossentropy", {}, "sigmoid", 3, sparse(3), [], ())]):
        yield f"loss_{i}_{name}", loss_case(name, o, a, units, label, metrics, extra)
    def two_outputs(r):
        x = keras.Input((6,), name="a"); z = L.Dense(5, "relu")(x)
        model = keras.Model([x], [L.Dense(3, "softmax", name="kind")(z), L.Dense(1, name="size")(z)])
        return model, [normal(r, (7, 6))], [r.integers(0, 3, 7).astype("int32"), normal(r, (7, 1))], {
            "losses": [{"class": "SparseCategoricalCrossentropy", "options": {}}, MSE[0]], "optimizer": SGD, "metrics": [["accuracy"], ["mae"]]}
    yield "two_outputs", two_outputs

    # Optimizers on one small network.
    def optimizer_case(kind, options):
        def make(r):
            x = keras.Input((8,))
            model = keras.Model(x, L.Dense(2)(L.Dense(9, "tanh")(x)))
            return model, [normal(r, (6, 8))], [normal(r, (6, 2))], {"losses": MSE, "optimizer": {"class": kind, "options": options}}
        return make
    for i, (kind, o) in enumerate([
            ("SGD", {}), ("SGD", {"learning_rate": 0.05}), ("SGD", {"learning_rate": 0.02, "momentum": 0.9}), ("SGD", {"learning_rate": 0.02, "momentum": 0.7, "nesterov": True}),
            ("SGD", {"learning_rate": 0.02, "weight_decay": 0.1}), ("Adam", {}), ("Adam", {"learning_rate": 0.01, "beta_1": 0.8, "beta_2": 0.95, "epsilon": 1e-4}), ("Adam", {"weight_decay": 0.01}),
            ("AdamW", {}), ("AdamW", {"learning_rate": 0.02, "weight_decay": 0.05})]):
        yield f"optimizer_{i}_{kind}", optimizer_case(kind, o)


if __name__ == "__main__":
    main()
