"""Weight and array files beside real Keras and NumPy, in both directions: weights_tool reads what they wrote, and they
load what it wrote. Runs under .venv-peers."""
import os
import subprocess
import sys
import tempfile

os.environ["KERAS_BACKEND"] = "jax"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["JAX_PLATFORMS"] = "cpu"

import warnings

warnings.filterwarnings("ignore")  # jax has no float64 unless asked; Keras says so for each variable

import h5py
import keras
import ml_dtypes
import numpy as np
from keras import layers as L

TOOL = os.path.join(os.environ.get("MILLPOND_BUILD_DIR", "build"), "tests", "weights_tool")
checks = 0


def check(condition, sentence):
    global checks
    checks += 1
    if not condition:
        sys.exit(f"not true: {sentence}")


def tool(*args):
    return subprocess.run([TOOL, *args], check=True, capture_output=True, text=True).stdout


def refused(*args):
    r = subprocess.run([TOOL, *args], capture_output=True, text=True)
    return r.stderr if r.returncode == 1 else f"not refused ({r.returncode}): {r.stdout}"


# ---- models: one of each kind of path ----
def sequential():
    m = keras.Sequential(
        [keras.Input((8,)), L.Dense(4, activation="relu", name="hidden"), L.BatchNormalization(), L.Dropout(0.5), L.Dense(2)]
    )
    m.compile(keras.optimizers.Adam(), "mse", metrics=["mae"])
    m.fit(np.random.rand(16, 8), np.random.rand(16, 2), verbose=0)
    return m


def functional():
    x = keras.Input((6, 8))
    y = L.MultiHeadAttention(2, 4)(x, x)
    y = L.LayerNormalization()(L.Add()([x, y]))
    z = L.Bidirectional(L.LSTM(3, return_sequences=True))(y)
    w = L.GRU(5)(z)
    inner = keras.Sequential([keras.Input((5,)), L.Dense(3), L.Dense(3)])
    return keras.Model(x, [inner(w), L.Flatten()(y)])


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.first = L.Dense(2)
        self.blocks = [L.Dense(2), L.Dense(2)]
        self.table = {"a": L.Conv2D(2, 1)}
        self.nested = [[L.Dense(2)]]
        self.scale = self.add_weight(shape=(3,), name="scale", initializer="random_normal")

    def build(self, shape):
        for layer in [self.first, *self.blocks, self.nested[0][0]]:
            layer.build((None, 2))
        self.table["a"].build((None, 4, 4, 2))

    def call(self, x):
        return self.nested[0][0](self.blocks[1](self.blocks[0](self.first(x))))


def subclassed():
    m = Subclassed()
    m.build((None, 2))
    return m


def convolutional():
    m = keras.Sequential(
        [keras.Input((16, 16, 3)), L.Conv2D(4, 3), L.MaxPooling2D(), L.DepthwiseConv2D(3), L.SeparableConv2D(4, 2), L.Flatten(), L.Dense(2)]
    )
    m.compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse")
    m.optimizer.build(m.trainable_variables)
    return m


def deep():  # more links in a group than one node of HDF5's index holds
    return keras.Sequential([keras.Input((3,))] + [L.Dense(3) for _ in range(70)])


def embedding():
    return keras.Sequential([keras.Input((5,), dtype="int32"), L.Embedding(50, 4), L.GlobalAveragePooling1D(), L.Dense(1)])


def of_dtype(dtype):
    def make():
        before = keras.config.dtype_policy()
        keras.config.set_dtype_policy(dtype)
        try:
            return keras.Sequential([keras.Input((3,)), L.Dense(5), L.Dense(2)])
        finally:
            keras.config.set_dtype_policy(before)

    return make


class Odd(L.Layer):  # kinds of variables that few layers have
    def build(self, shape):
        self.flags = self.add_weight(shape=(4,), dtype="bool", initializer="ones", trainable=False)
        self.small = self.add_weight(shape=(3,), dtype="uint8", initializer="ones", trainable=False)
        self.count = self.add_weight(shape=(), dtype="int32", initializer="zeros", trainable=False)
        self.none = self.add_weight(shape=(0, 4), initializer="zeros", trainable=False)

    def call(self, x):
        return x


def odd():
    m = keras.Sequential([keras.Input((3,)), Odd()])
    m.layers[0].flags.assign(np.array([True, False, False, True]))
    m.layers[0].small.assign(np.array([1, 200, 255], "uint8"))
    m.layers[0].count.assign(7)
    return m


MODELS = [sequential, functional, subclassed, convolutional, deep, embedding, of_dtype("float16"), of_dtype("bfloat16"), of_dtype("float64"), odd]


def contents(file):
    """path -> (dtype, shape, array, attributes) of datasets, and the attributes of groups."""
    found = {}

    def visit(path, o):
        attributes = dict(o.attrs)
        if isinstance(o, h5py.Dataset):
            value = np.array(o)
            if attributes.get("dtype") == "bfloat16":
                value = value.view(ml_dtypes.bfloat16)
            found[path] = (o.dtype.str, o.shape, value, attributes)
        else:
            found[path] = attributes

    with h5py.File(file) as f:
        f.visititems(visit)
    return found


def same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def variables(model):
    own = [np.array(v) for v in model.weights]
    return own + ([np.array(v) for v in model.optimizer.variables] if getattr(model, "optimizer", None) else [])


def check_model(make, folder):
    name = getattr(make, "__name__", "model")
    saved, copied = f"{folder}/saved.weights.h5", f"{folder}/copied.weights.h5"
    model = make()
    for i, v in enumerate(model.weights):
        if v.dtype.startswith(("float", "bfloat")):
            v.assign(np.random.default_rng(i).normal(size=v.shape))
    model.save_weights(saved)

    # Keras saves, we read.
    dumped = f"{folder}/dump"
    os.mkdir(dumped)
    listed = dict(line.split(" ", 1) for line in tool("dump", saved, dumped).splitlines())
    theirs = contents(saved)
    datasets = {p: v for p, v in theirs.items() if isinstance(v, tuple)}
    check(set(listed) == set(datasets), f"{name}: the same entries ({set(listed) ^ set(datasets)})")
    for path, (_, _, value, _) in datasets.items():
        ours = np.load(f"{dumped}/{path.replace('/', '.')}.npy")
        if value.dtype == ml_dtypes.bfloat16:
            value = value.astype(np.float32)
        check(same(ours, value), f"{name}: {path} is read as Keras wrote it")
        os.unlink(f"{dumped}/{path.replace('/', '.')}.npy")
    os.rmdir(dumped)

    # We write, Keras loads, into a model with other values.
    tool("copy", saved, copied)
    ours = contents(copied)
    check(list(ours) == list(theirs), f"{name}: the same tree ({set(ours) ^ set(theirs)})")
    for path, value in theirs.items():
        if isinstance(value, tuple):
            check(ours[path][:2] == value[:2] and same(ours[path][2], value[2]) and ours[path][3] == value[3], f"{name}: {path} is the same dataset")
        else:
            check(ours[path] == value, f"{name}: {path} has the same attributes")
    before = variables(model)
    other = make()
    other.load_weights(copied)
    after = variables(other)
    check(len(before) == len(after) and all(same(a, b) for a, b in zip(before, after)), f"{name}: Keras loads what we wrote")
    once = open(copied, "rb").read()
    tool("copy", copied, copied)  # over itself
    check(open(copied, "rb").read() == once, f"{name}: the same weights are the same file, byte for byte")
    os.unlink(saved), os.unlink(copied)


def check_numpy(folder):
    a, b = f"{folder}/a.npy", f"{folder}/b.npy"
    for dtype in ["f2", "f4", "f8", "i4", "i8", "u1", "?"]:
        for shape in [(), (1,), (0,), (7,), (3, 0, 2), (2, 3, 5), (1,) * 8]:
            for version in [(1, 0), (2, 0), (3, 0)]:
                x = (np.random.default_rng(1).random(shape) * 200).astype(dtype)
                with open(a, "wb") as f:
                    np.lib.format.write_array(f, np.asarray(x), version=version)
                tool("npy", a, b)
                check(same(np.load(b), np.asarray(x)), f"npy: {dtype} {shape} {version} comes back")
                if version == (1, 0):
                    check(open(a, "rb").read() == open(b, "rb").read(), f"npy: {dtype} {shape} is written as NumPy does, byte for byte")
    np.save(a, np.asfortranarray(np.ones((2, 3))))
    check("Fortran order" in refused("npy", a, b), "npy: Fortran order is refused")
    np.save(a, np.ones(3, ">f4"))
    check("big endian" in refused("npy", a, b), "npy: big endian is refused")
    np.save(a, np.array(["x", "yz"]))
    check("not supported" in refused("npy", a, b), "npy: strings are refused")
    np.save(a, np.array([{}, None]), allow_pickle=True)
    check("not supported" in refused("npy", a, b), "npy: pickled objects are refused")
    np.save(a, np.zeros(3, [("u", "f4"), ("v", "i4")]))
    check("records" in refused("npy", a, b), "npy: records are refused")
    np.savez(a[:-1] + "z", x=np.ones(3))
    os.rename(a[:-1] + "z", a)
    check('found "PK' in refused("npy", a, b), "npy: an .npz archive is refused")


def check_hostile(folder):
    """Files that only h5py can make: each must be refused, and say what it was."""
    file, out = f"{folder}/hostile.h5", f"{folder}/out.h5"

    def with_file(fill, expected):
        with h5py.File(file, "w") as f:
            fill(f)
        said = refused("copy", file, out)
        check(expected in said, f"h5: refused with '{expected}' ({said.splitlines()[:1]})")
        os.unlink(file)

    def accepted(fill):
        with h5py.File(file, "w") as f:
            fill(f)
        tool("copy", file, out)
        check(all(same(v[2], contents(out)[p][2]) for p, v in contents(file).items() if isinstance(v, tuple)), "h5: compressed values are read")
        os.unlink(file)

    x = np.arange(6000, dtype="f4").reshape(60, 100)
    accepted(lambda f: f.create_dataset("layers/a/vars/0", data=x, chunks=(7, 13)))
    accepted(lambda f: f.create_dataset("layers/a/vars/0", data=x, compression="gzip", shuffle=True))
    accepted(lambda f: f.create_dataset("layers/a/vars/0", data=np.zeros((1000, 1000)), compression="gzip"))
    accepted(lambda f: f.create_dataset("layers/a/vars/0", data=x, maxshape=(None, None)))

    def soft(f):
        f["layers/a/vars/0"] = x
        f["layers/b"] = h5py.SoftLink("/layers/a")

    def soft_loop(f):
        f.create_group("layers")["a"] = h5py.SoftLink("/layers/a")

    def external(f):
        f["layers"] = h5py.ExternalLink("/etc/passwd", "/")

    def hard_loop(f):
        g = f.create_group("layers/a")
        g["b"] = f["layers"]

    def twice(f):
        f["layers/a/vars/0"] = x
        f["layers/b"] = f["layers/a"]

    def aliases(f):
        f["layers/a/0"] = x
        for i in range(1, 9):
            f[f"layers/a/{i}"] = f["layers/a/0"]

    def outside(f):
        f.create_dataset("layers/a", shape=(10,), dtype="f4", external=[("/etc/passwd", 0, 40)])

    def virtual(f):
        layout = h5py.VirtualLayout((10,), "f4")
        layout[:] = h5py.VirtualSource("/etc/other.h5", "x", (10,))
        f.create_virtual_dataset("v", layout)

    def deep_groups(f):
        f.create_group("/".join(["g"] * 200))

    def named_type(f):
        f["t"] = np.dtype("f4")

    with_file(soft, "a soft link")
    with_file(soft_loop, "a soft link")
    with_file(external, "an external link")
    with_file(hard_loop, "linked twice")
    with_file(twice, "linked twice")
    with_file(aliases, "at most the file's")
    with_file(outside, "values in another file")
    with_file(virtual, "a virtual dataset")
    with_file(deep_groups, "a deeper one")
    with_file(named_type, "a named type")
    with_file(lambda f: f.create_dataset("x", data=x, chunks=(7, 13), compression="lzf"), "filter 32000")
    with_file(lambda f: f.create_dataset("x", data=x, chunks=(7, 13), fletcher32=True), "filter 3")
    with_file(lambda f: f.create_dataset("x", data=x, chunks=(7, 13), compression="szip") if "szip" in h5py.filters.encode else f.create_dataset("x", data=x, chunks=(7, 13), scaleoffset=3), "filter")
    with_file(lambda f: f.create_dataset("x", shape=(1 << 40,), dtype="f4", chunks=(1 << 20,)), "bytes of values from 0 bytes stored")
    with_file(lambda f: f.create_dataset("x", shape=(1 << 40,), dtype="f4", chunks=(1 << 20,), compression="gzip"), "bytes of values from 0 bytes stored")
    with_file(lambda f: f.create_dataset("x", shape=(1 << 20, 1 << 20, 1 << 20, 1), dtype="f8", chunks=(1, 1, 1, 1)), "less than 2^59")
    with_file(lambda f: f.create_dataset("x", data=np.zeros((1,) * 9)), "at most 8 dimensions")
    with_file(lambda f: f.create_dataset("x", data=h5py.Empty("f4")), "expected values, found none")
    with_file(lambda f: f.create_dataset("x", data="text"), "values of another kind")
    with_file(lambda f: f.create_dataset("x", data=np.zeros(3, "V2")), "values of another kind")
    with_file(lambda f: f.create_dataset("x", data=np.zeros(3, ">f4")), "another number of 4 bytes")
    with_file(lambda f: f.create_dataset("x", data=np.zeros(3, "c8")), "values of another kind")

    # The formats of other HDF5 libraries: few links, many (a heap and an index), very many (tables of blocks in the heap).
    for libver in ["earliest", "v108", "v110", "v112", "v114", "latest"]:
        for links in [1, 8, 9, 70, 3000] if libver in ("earliest", "v108") else [9]:
            with h5py.File(file, "w", libver=libver if libver in ("earliest", "latest") else (libver, libver)) as f:
                g = f.create_group("layers/a/vars", track_order=libver == "v110")
                g.attrs["name"] = "a name"
                for i in range(links):
                    g[f"{i}"] = np.float32(i) if i % 7 else np.full((2, 3), i, "i8")
                for i in range(12):
                    f.create_group(f"layers/empty_{i}")
            tool("copy", file, out)
            found, there = contents(out), contents(file)
            check(all(same(v[2], found[p][2]) for p, v in there.items() if isinstance(v, tuple)), f"h5: {links} links, {libver}")
            check(len([v for v in found.values() if isinstance(v, tuple)]) == links, f"h5: {links} links and no more, {libver}")
            check(found["layers/a/vars"] == {"name": "a name"}, f"h5: attributes, {libver}")
    with h5py.File(file, "w", libver="latest") as f:
        f.create_dataset("x", data=x, chunks=(7, 13))
    check("chunks in a B-tree" in refused("copy", file, out), "h5: newer chunk indexes are refused by name")

    # What Keras 2.13 called the layers.
    with h5py.File(file, "w") as f:
        f["_layer_checkpoint_dependencies/dense/vars/0"] = x
    tool("copy", file, out)
    check("layers/dense/vars/0" in contents(out), "h5: the old name of layers/ is read")
    # Whole numbers of every width.
    with h5py.File(file, "w") as f:
        f["seed"] = np.array([1, 4294967295], "u4")
        f["tiny"] = np.array([-128, 127], "i1")
    tool("copy", file, out)
    found = contents(out)
    check(same(found["seed"][2], np.array([1, 4294967295], "u4")) and same(found["tiny"][2], np.array([-128, 127], "i1")), "h5: small and unsigned whole numbers stay as they are")


with tempfile.TemporaryDirectory() as folder:
    check_numpy(folder)
    check_hostile(folder)
    for make in MODELS:
        check_model(make, folder)
print(f"{checks} checks beside Keras {keras.__version__}, h5py {h5py.__version__}, NumPy {np.__version__}: all true")
