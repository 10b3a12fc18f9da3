"""Writes the seed corpora, fuzz/seeds/*: run under .venv-peers (h5py) after changing it, and commit what it wrote.
Small files that between them use every part of the formats that a reader walks through."""
import io
import os
import shutil

import h5py
import numpy as np

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "seeds")


def folder(name):
    path = os.path.join(HERE, name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def npy():
    out = folder("npy")

    def put(name, x, version=(1, 0)):
        with open(f"{out}/{name}.npy", "wb") as f:
            np.lib.format.write_array(f, x, version=version, allow_pickle=False)

    for dtype in ["f2", "f4", "f8", "i4", "i8", "u1", "?"]:
        put(f"vector_{np.dtype(dtype).name}", np.arange(5).astype(dtype))
    put("scalar", np.array(1.5, "f4"))
    put("empty", np.zeros((3, 0, 2), "f4"))
    put("version2", np.arange(6, dtype="f4").reshape(2, 3), (2, 0))
    put("version3", np.arange(6, dtype="f4").reshape(2, 3), (3, 0))
    put("rank8", np.zeros((1,) * 7 + (2,), "u1"))
    put("fortran", np.asfortranarray(np.ones((2, 3), "f4")))
    put("big_endian", np.ones(3, ">f4"))
    put("text", np.array(["ab", "c"]))
    put("record", np.zeros(2, [("u", "f4"), ("v", "i4")]))


def weights_h5():
    out = folder("weights_h5")

    def put(name, fill, libver="earliest"):
        buffer = io.BytesIO()
        with h5py.File(buffer, "w", libver=libver) as f:
            fill(f)
        with open(f"{out}/{name}.h5", "wb") as f:
            f.write(buffer.getvalue())

    x = np.arange(6, dtype="f4").reshape(2, 3)

    def plain(f):
        f["layers/dense/vars/0"] = x
        f["layers/dense/vars"].attrs["name"] = "hidden"

    def types(f):
        for i, t in enumerate(["f2", "f8", "i4", "i8", "u1", "?", "u4"]):
            f[str(i)] = np.ones(2, t)
        d = f.create_dataset("b", data=np.zeros(2, "V2"))
        d.attrs["dtype"] = "bfloat16"

    def many(f):
        for i in range(10):
            f[f"{i}"] = np.float32(i)

    put("many_v108", many, ("v108", "v108"))
    put("plain", plain)
    put("plain_latest", plain, "latest")
    put("types_latest", types, "latest")
    put("chunked", lambda f: f.create_dataset("x", data=x, chunks=(1, 2)))
    put("chunked_latest", lambda f: f.create_dataset("x", data=x, chunks=(1, 2)), "latest")
    put("gzip", lambda f: f.create_dataset("x", data=np.zeros((20, 20)), compression="gzip", shuffle=True))
    put("gzip_latest", lambda f: f.create_dataset("x", data=np.zeros((20, 20)), compression="gzip", shuffle=True), "latest")
    put("growing_latest", lambda f: f.create_dataset("x", data=x, maxshape=(None, 3)), "latest")
    put("scalar", lambda f: f.create_dataset("x", data=1.5))
    put("soft_link_latest", lambda f: f.__setitem__("a", h5py.SoftLink("/a")), "latest")
    put("external_link_latest", lambda f: f.__setitem__("a", h5py.ExternalLink("b.h5", "/c")), "latest")


def keras_config():
    os.environ["KERAS_BACKEND"] = "jax"
    import keras
    from keras import layers as L

    out = folder("keras_config")

    def put(name, model):
        with open(f"{out}/{name}.json", "w") as f:
            f.write(model.to_json())

    put("dense", keras.Sequential([keras.Input((4,)), L.Dense(3, "relu"), L.Dropout(0.5), L.Dense(1, "sigmoid")]))
    put("images", keras.Sequential([keras.Input((9, 8, 2)), L.Conv2D(4, 3, padding="same", groups=2), L.BatchNormalization(), L.ReLU(6.0), L.MaxPooling2D(), L.AveragePooling2D(2, 1),
                                    L.ZeroPadding2D(((1, 0), (0, 2))), L.GlobalAveragePooling2D(), L.Reshape((2, -1)), L.Flatten(), L.Dense(2, "softmax")]))
    x, y = keras.Input((5,), dtype="int32"), keras.Input((5, 6))
    z = L.Embedding(7, 6)(x)
    z = L.Add()([z, L.MultiHeadAttention(2, 3)(z, y, use_causal_mask=True)])
    z = L.Concatenate()([L.LayerNormalization()(z), y])
    put("functional", keras.Model([x, y], [L.Dense(2)(z), L.Softmax()(L.Activation("tanh")(z))]))
    inner = keras.Sequential([keras.Input((3,)), L.Dense(3)])
    a = keras.Input((3,))
    put("nested", keras.Model(a, inner(inner(a))))


npy()
weights_h5()
keras_config()
for path, _, files in os.walk(HERE):
    for f in sorted(files):
        print(os.path.getsize(os.path.join(path, f)), os.path.join(path, f))
