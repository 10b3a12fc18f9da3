"""Writes the seed corpora, fuzz/seeds/*: run under .venv-peers (h5py) after changing it, and commit what it wrote.
Small files that between them use every part of the formats that a reader walks through."""
import io
import os
import sys

import h5py
import numpy as np

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "seeds")


def folder(name):
    path = os.path.join(HERE, name)
    os.makedirs(path, exist_ok=True)
    for old in os.listdir(path):
        # Kept: files of an older version of a format, which nothing here writes any more, and what a fuzzer found.
        if "_v1." not in old and not old.startswith("found_"):
            os.remove(os.path.join(path, old))
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


# The first byte of a seed of csv, tfrecord, image and text_lines says how the target reads the rest.
def csv():
    out = folder("csv")

    def put(name, how, text):
        with open(f"{out}/{name}.csv", "wb") as f:
            f.write(bytes([how]) + text)

    put("numbers", 1, b"a,b,c\n1,2.5,-3e2\n4,5.25,6\n7,,9\n")
    put("types", 1, b"n,f,t,b,w\r\n1,0.5,true,False,word\r\n2,1e-3,False,TRUE,\"a,b\"\r\n")
    put("quotes", 1, b'x,y\n"a\nb","say ""hi"""\n"",z\n" 1 ",w\n')
    put("no_header", 0, b"1,2\n3,4\n")
    put("semicolon", 7, b"a;b\n'x;y';1\n'it''s';2\n")
    put("missing", 1 | 16 | 32, b"a,b\n1,?\n-1,2\n,3\n")
    put("late_change", 1 | 64, b"a,b\n1,2\n3,4\n5.5,x\n6,7,8\n9\n")
    put("double", 1 | 8, b"v\n0.1234567890123456789\n1.7976931348623157e308\n4.9e-324\nnan\n-inf\n")
    put("mark", 1, b"\xef\xbb\xbfa\n\n\n1\n\r\n2")
    put("open_quote", 1, b'a,b\n1,2\n"3,4\n5,6\n')
    put("long", 1, b"a,b\n" + b"1,2\n" * 1200 + b'"' + b"x" * 5000 + b'",3\n4,5\n')


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def framed(record):
    def masked(data):
        crc = crc32c(data)
        return ((((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF).to_bytes(4, "little")

    length = len(record).to_bytes(8, "little")
    return length + masked(length) + record + masked(record)


def piece(field, data):
    return bytes([field << 3 | 2, len(data)]) + data


def one_example():
    ints = piece(3, piece(1, bytes([5, 0xAC, 2])) + bytes([8, 7]))
    floats = piece(2, piece(1, np.float32([1.5, -2]).tobytes()) + bytes([13]) + np.float32(3).tobytes())
    words = piece(1, piece(1, b"abc") + piece(1, b""))
    entries = [piece(1, piece(1, name) + piece(2, f)) for name, f in [(b"i", ints), (b"f", floats), (b"w", words), (b"none", b"")]]
    return piece(1, b"".join(entries))


def example():
    out = folder("example")
    for name, data in [("all", one_example()), ("twice", one_example() * 2), ("unknown", bytes([0x48, 1, 0x49]) + b"12345678" + one_example() + bytes([0x4D]) + b"1234"),
                       ("kinds", piece(1, piece(1, piece(1, b"a") + piece(2, piece(3, piece(1, b"\1")) + piece(3, piece(1, b"\2")) + piece(1, piece(1, b"x"))))))]:
        with open(f"{out}/{name}.pb", "wb") as f:
            f.write(data)


def tfrecord():
    import gzip
    import zlib

    out = folder("tfrecord")
    records = framed(b"") + framed(b"hello") + framed(one_example()) + framed(bytes(range(256)) * 20) + framed(b"end")
    for name, how, data in [("plain", 0, records), ("gzip", 1, gzip.compress(records, mtime=0)), ("zlib", 2, zlib.compress(records)),
                            ("two_members", 1, gzip.compress(framed(b"a"), mtime=0) + gzip.compress(framed(b"b"), mtime=0)), ("auto", 3, gzip.compress(framed(b"c") * 300, mtime=0)),
                            ("empty", 0, b""), ("damaged", 0, framed(b"a") + b"garbage" + framed(b"b") + framed(b"c")[:-1] + b"x" + framed(b"d"))]:
        with open(f"{out}/{name}.tfrecord", "wb") as f:
            f.write(bytes([how]) + data)


def image():
    import tensorflow as tf

    out = folder("image")
    y, x = np.mgrid[0:19, 0:23]
    pixels = np.stack([127 + 100 * np.sin(x / 3 + c) * np.cos(y / 4) for c in range(3)], -1).astype(np.uint8)
    deep = (pixels.astype(np.uint16) * 257)
    for name, how, data in [
        ("colour.jpg", 0, tf.io.encode_jpeg(pixels, quality=80)),
        ("grey.jpg", 1, tf.io.encode_jpeg(pixels[..., :1], format="grayscale")),
        ("progressive.jpg", 0, tf.io.encode_jpeg(pixels, progressive=True)),
        ("small.jpg", 64, tf.io.encode_jpeg(pixels, chroma_downsampling=False)),
        ("as_it_is.jpg", 2, tf.io.encode_jpeg(pixels[:3, :3])),
        ("colour.png", 0, tf.io.encode_png(pixels)),
        ("grey.png", 1, tf.io.encode_png(pixels[..., :1])),
        ("alpha.png", 0, tf.io.encode_png(np.concatenate([pixels, pixels[..., :1]], -1))),
        ("deep.png", 0, tf.io.encode_png(deep[:5, :5])),
        ("to_grey.png", 1, tf.io.encode_png(pixels[:7, :7])),
    ]:
        with open(f"{out}/{name}", "wb") as f:
            f.write(bytes([how]) + data.numpy())
    # Palette, few bits, interlaced: TensorFlow does not write these.
    import struct
    import zlib

    def png(depth, colour, interlaced, rows, *more):
        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

        head = struct.pack(">IIBBBBB", 4, 4, depth, colour, 0, 0, interlaced)
        return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + b"".join(chunk(*m) for m in more) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")

    palette = (b"PLTE", bytes(range(12)))
    for name, data in [("palette2", png(2, 3, 0, b"\0\x1b" * 4, palette, (b"tRNS", b"\0\x80"))), ("grey1", png(1, 0, 0, b"\0\xa0" * 4)),
                       ("interlaced4", png(4, 0, 1, b"\0\x10" + b"\0\x20" + b"\0\x12" + b"\0\x12" * 2 + b"\0\x12\x34" * 2)), ("text", png(8, 0, 0, b"\0abcd" * 4, (b"tEXt", b"a\0b")))]:
        with open(f"{out}/{name}.png", "wb") as f:
            f.write(b"\0" + data)


def text_lines():
    import gzip

    out = folder("text_lines")
    for name, how, data in [("unix", 20, b"one\ntwo\n\nlast"), ("windows", 20, b"one\r\ntwo\r\n"), ("long", 3, b"abc\nabcd\nabc\r\nabcd\r\nx\n"),
                            ("gzip", 50, gzip.compress(b"a line\n" * 100, mtime=0)), ("empty", 1, b"")]:
        with open(f"{out}/{name}.txt", "wb") as f:
            f.write(bytes([how]) + data)


def npz():
    import zipfile

    out = folder("npz")
    arrays = dict(x=np.arange(6, dtype="f4").reshape(2, 3), y=np.arange(3), flag=np.array([True, False]), scalar=np.float64(1.5), none=np.zeros((0, 2), "u1"))
    np.savez(f"{out}/stored.npz", **arrays)
    np.savez_compressed(f"{out}/deflated.npz", **arrays)
    np.savez_compressed(f"{out}/zeros.npz", z=np.zeros((500, 4), "f4"))
    with zipfile.ZipFile(f"{out}/mixed.npz", "w") as z:
        z.writestr("readme.txt", "hello")
        buffer = io.BytesIO()
        np.save(buffer, np.ones(2, "i4"))
        z.writestr("a.npy", buffer.getvalue(), zipfile.ZIP_DEFLATED)
        z.comment = b"a comment"


# ---- what the doctor reads: run files, what the agent says, shared memory ----
def put_all(name, ending, files):
    out = folder(name)
    for key, data in files.items():
        with open(f"{out}/{key}.{ending}", "wb") as f:
            f.write(data)


SAID = [
    {"note": "start", "python": "3.11.7", "cwd": "/nowhere"},
    {"note": "framework", "name": "tensorflow"},
    {"note": "framework", "name": "keras", "backend": "torch"},
    {"note": "counters", "values": {"tf.traces": 3, "keras.models": 2, "torch.tensors": 90, "pyplot.figures": 4}},
    {"note": "counters", "values": {"tf.traces": 30, "keras.models": 20, "jax.compiles": 9, "tf.gradient_registry": 70}},
    {"note": "probe", "kind": "epoch", "period": 4, "rss": 400000000, "after_gc": 390000000, "after_trim": None, "collected": 12, "gc_types": {"cell": 4}},
    {"note": "probe", "kind": "epoch", "period": 8, "rss": 480000000, "after_gc": 470000000, "after_trim": 470000000, "collected": 0},
    {"note": "holders", "kind": "epoch", "types": [{"type": "Function", "count": 9, "per_period": 1.5, "bytes": 100}],
     "containers": [{"type": "list", "length": 480, "per_period": 40.0, "item_type": "Tensor", "bytes_per_period": 20000000, "exact": False, "holder": "K.kept", "chain": ["list of 480", "local k of main"],
                     "file": "train.py", "line": 2, "function": "keep", "text": "self.kept.append(loss)", "found_by": "source", "still": True, "bounded": None},
                    {"type": "dict", "length": 9, "per_period": 1, "item_type": "ndarray", "bytes_per_period": 20, "file": "train.py", "line": 7, "text": "d[key] = value", "bounded": 100, "library": True}]},
    {"note": "lines", "calls": [{"what": w, "file": "train.py", "line": 9, "function": "main", "text": "step(i, lr=0.1)", "count": 40, "loop": {"file": "train.py", "line": 8, "text": "f = tf.function(lambda x: x)"}}
                                for w in ["trace", "compile", "model", "predict", "fit", "figure", "load_model", "jax_compile", "backward_create_graph", "dataset", "clear_session"]]},
    {"note": "dataset", "op": "shuffle", "buffer": 100000, "file": "train.py", "line": 5, "text": "d.shuffle(100000)"},
    {"note": "dataset", "op": "cache", "file": "train.py", "line": 6},
    {"note": "data", "what": "fit", "arrays": [{"shape": [60000, 28, 28], "dtype": "float64", "bytes": 376320000, "type": "ndarray"}], "file": "train.py", "line": 4, "text": "model.fit(x, y)"},
    {"note": "advice", "what": "retracing", "file": "train.py", "line": 9, "text": "step(i)", "count": 5},
    {"note": "variant", "name": "no_cache", "count": 1},
    {"note": "walk", "kind": "epoch", "period": 6, "apart": False, "seconds": 0.01, "objects": 28993, "alive": 60000000, "reached": 50000000, "native": 6000000, "garbage": 4000000, "from_ms": 500,
     "until_ms": 11500, "holders": [{"bytes": 50000000, "blocks": 33.3, "samples": 40, "items": 40, "how": "reached", "births": [3000000] * 16, "type": "list", "length": 36, "bounded": None, "module": "builtins",
                                     "chain": ["attribute kept of K", "local k of main"], "born": [{"file": "train.py", "line": 2, "function": "keep", "text": "x = make()", "bytes": 50000000}]},
                                    {"bytes": 6000000, "blocks": 9, "samples": 9, "items": 9, "how": "native", "births": [0] * 15 + [6000000], "type": "Tensor"},
                                    {"bytes": 4000000, "blocks": 3, "samples": 9, "items": 9, "how": "garbage", "repeats": 40, "births": [1], "type": "Node"}]},
    {"note": "walk", "refused": "this interpreter has no table of its objects"},
    {"note": "source", "file": "<ipython-input-3-0a>", "function": "<module>", "first": 1, "text": "kept.append(x)"},
    {"note": "holders", "kind": "epoch", "period": 8, "final": True, "types": [], "containers": [
        {"type": "list", "length": 48, "per_period": 6.0, "item_type": "bytearray", "bytes_per_period": 18000000, "exact": True, "holder": "K.kept", "chain": ["list of 48", "attribute kept of K"], "rises": 4,
         "still": True, "bounded": None, "file": "train.py", "line": 2, "function": "keep", "text": "kept.append(x)", "found_by": "source", "of": "builtins.list", "items": {"family": "object"},
         "statement": {"line": 2, "text": "  kept.append(x)", "digest": "42:9f3aac64", "how": how, "target": [2, 6], "value": [14, 15], "atom": True, "alone": True, "parts": [[14, 15, True]], "end": 16, "indent": 2}}
        for how in ("append", "assign", "add", "decorator", "close", "argument", "tf.function")]},
    {"note": "end", "agent_seconds": 0.5, "exception": {"type": "MemoryError", "text": "x"}},
]


def kind_of(note):
    return note["note"] + ("_refused" if "refused" in note else "_final" if "final" in note else "")


def lines(notes):
    import json

    return "\n".join(json.dumps(n) for n in notes).encode()


def agent_notes():
    files = {"all": lines(SAID), "strange": b'{"note": 7}\n{"note": "holders", "containers": [[], {}, 3]}\n{"note": "probe", "rss": 1e300, "period": -5}\n[1]\n"x"\nnull\n{\n'}
    for i, note in enumerate(SAID):
        files.setdefault(kind_of(note), lines([note]))
    put_all("agent_notes", "jsonl", files)


def python_source():
    plain = "import os\n\n@one(\n  1)\ndef f(x):\n    ```three\nquotes```\n    def g(): return [1,\n2]\n    return g\n\nclass K:\n    async def h(self):\n\tpass\n\nfor i in range(3):\n    f(i) \\\n+ 1\n"
    tabs = "def f():\n\tif 1:\n\t\tx = 'a\\'#' # `\n\telse: pass\ny = 1\n"
    files = {"plain": plain, "open": "def f(:\n  x = ```\n  def g():\n", "tabs": tabs, "strange": "@\n@\n(\n)\\\n\fdef \xff():\r\n pass"}
    put_all("python_source", "py", {name: text.replace("`", '"').encode("latin-1") for name, text in files.items()})


def schema():
    text = open(os.path.join(HERE, "..", "..", "src", "runfile", "schema.h")).read()
    return text.split('R"sql(')[1].split(')sql"')[0]


def run_file():
    import json
    import sqlite3
    import tempfile

    MiB = 1 << 20

    def watched(db):
        db.execute("INSERT INTO processes VALUES (1, 4711, 1, 'python3', 'python3 train.py', 0.25, NULL, 'inside')")
        db.execute("INSERT INTO spaces VALUES (2, 'shared')")
        db.execute("INSERT INTO sources VALUES (1, 'train.py', 'keep', 11, 'def keep(x):\n    kept.append(x)\n')")
        db.executemany("INSERT INTO frames VALUES (?, ?, ?, ?, ?, ?)", [(1, "libnumpy.so", "+0x12", 0, 1, 0), (2, "train.py", "main", 41, 0, 1), (3, "train.py", "keep", 12, 0, 1)])
        db.executemany("INSERT INTO sites VALUES (?, 1, ?, ?, ?, ?)", [(1, "1 2", 90 * MiB, 9.0, 80 * MiB), (2, "3 2", 160 * MiB, 70.5, 0)])
        for i in range(1, 11):
            rss = (200 + 16 * i) * MiB
            db.execute("INSERT INTO marks VALUES (?, 1, ?, 'epoch', 'fit', ?, 1, ?, ?, ?, 0, 0, NULL, NULL, 1, ?)", (i, float(i), i, rss, rss - 50 * MiB, 4 * MiB, f"{100 * i} {i}"))
            db.executemany("INSERT INTO site_states VALUES (?, ?, ?, ?, ?)", [(i, 1, 10 * MiB, 1.0, ""), (i, 2, 16 * i * MiB, 7.0 * i, " ".join(["2000"] * 8))])
            db.execute("INSERT INTO os_series VALUES (?, NULL, 1, 1, ?, NULL, NULL, NULL, 0, NULL, NULL, NULL)", (i + 0.5, rss))
            db.execute("INSERT INTO tree_series VALUES (?, 1, 1, 2, ?, NULL, NULL)", (float(i), 2 * rss))
            db.executemany("INSERT INTO process_series VALUES (?, ?, ?, ?, ?, NULL)", [(float(i), 1, 1, rss, rss // 2), (float(i), 1, 2, MiB, None), (float(i), None, 1, MiB, None)])
        db.executemany("INSERT INTO threads VALUES (?, 1, ?, ?)", [(1, 4711, "python3"), (2, 4712, "loader")])
        db.executemany("INSERT INTO site_details VALUES (?, ?, ?)", [(1, 2, 70 * MiB), (2, None, 0)])
        db.executemany("INSERT INTO sizes VALUES (1, ?, ?, ?, ?, ?)", [(1 << i, 9.5 * i, i * MiB, i * MiB // 2, i * MiB // 4) for i in range(4, 24)])
        for i, note in enumerate(SAID):
            if kind_of(note) in ("start", "probe", "holders", "lines", "walk", "holders_final"):
                db.execute("INSERT INTO notes VALUES (?, 1, ?)", (float(i), json.dumps(note)))

    def engine(db):
        db.executemany("INSERT INTO accounts VALUES (?, ?)", [(1, "weights/dense"), (2, "process/free in the allocator")])
        db.execute("INSERT INTO programs VALUES (1, 'train', 2, 320, 320, 0.001, 'best fit')")
        db.execute("INSERT INTO plan_buffers VALUES (1, 'dense/y', 1, 'dense', 0, 256, 0, 1)")
        db.executemany("INSERT INTO plan_calls VALUES (1, ?, 'matmul', 'dense', 'dense/matmul', 128)", [(0,), (1,)])
        db.execute("INSERT INTO phases VALUES (1, 'fit', '', 0, NULL, 0.0, 9.0)")
        for i in range(2, 9):
            db.execute("INSERT INTO phases VALUES (?, 'epoch', '', ?, 1, ?, ?)", (i, i, float(i), i + 0.9))
            db.executemany("INSERT INTO series VALUES (?, ?, NULL, 1, ?, ?, ?)", [(i + 0.5, i, 1, "current", 4096 * i), (i + 0.5, i, 2, "peak", 9000)])
            db.execute("INSERT INTO os_series VALUES (?, ?, NULL, 1, ?, ?, NULL, NULL, 0, 1000000, 20000, 3000000)", (i + 0.5, i, 200 * MiB, 201 * MiB))

    def made(fill, meta):
        with tempfile.TemporaryDirectory() as place:
            db = sqlite3.connect(f"{place}/x")
            db.executescript("PRAGMA page_size = 512; PRAGMA application_id = 0x504f4e44; PRAGMA user_version = 2;" + schema())
            db.executemany("INSERT INTO meta VALUES (?, ?)", {"schema_minor": "1", "seconds": "10.5", "status": "ended", **meta}.items())
            fill(db)
            db.commit()
            db.close()
            return open(f"{place}/x", "rb").read()

    # Beside these lie watched_v1.db and engine_v1.db, of the time when the schema had version 1.
    put_all("run_file", "db", {"watched": made(watched, {"command": "python train.py", "limit.bytes": "8000000000", "limit.name": "machine", "peak_rss": "377487360", "sampling.samples": "99"}),
                                 "engine": made(engine, {"model": "mlp", "planned_bytes": "320"}), "empty": made(lambda db: None, {})})


def run_rows():
    tables = 23

    def row(table, *cells, repeats=0):
        cells = b"".join(cells)
        if repeats < 10:
            return bytes([table + tables * repeats]) + cells
        first = len(cells) * 10 // (repeats + 1)
        return row(table, cells[:first], repeats=9) + row(table, cells[first:], repeats=repeats - 10)

    def usual(n, move=0):
        return bytes([255 - move]) * n

    def text(t):
        return bytes([65]) + bytes([len(t)]) + t  # 65 % 12 == 5

    def edge(i):
        return bytes([74, i])  # 74 % 12 == 2

    watched = row(8, usual(8)) + row(9, usual(18), repeats=2) + row(10, usual(12), repeats=1) + row(11, usual(16 * 12), repeats=11) + row(12, usual(5 * 12), repeats=11) + row(12, usual(5 * 5), repeats=4) + row(16, usual(6 * 6), repeats=5) + row(17, usual(5)) + row(14, usual(3 * 11), repeats=10)
    watched += row(20, usual(4 * 2), repeats=1) + row(21, usual(3 * 2), repeats=1) + row(22, usual(6 * 10), repeats=9)
    engine = row(1, usual(4), repeats=1) + row(5, usual(7)) + row(6, usual(16), repeats=1) + row(7, usual(12), repeats=1) + row(2, usual(7 * 8), repeats=7) + row(3, usual(7 * 8), repeats=7) + row(4, usual(12 * 8), repeats=7)
    meta = b"".join(row(0, text(k), text(v)) for k, v in [(b"seconds", b"nan"), (b"peak_rss", b"-1"), (b"file_rss", b"1e300"), (b"status", b"ended"), (b"limit.bytes", b"9" * 19)])
    edges = b"".join(row(11, usual(5), edge(i), usual(1), edge(i) * 7, usual(2)) for i in range(15))
    nothing = b"".join(row(t, bytes([72]) * 16) for t in range(tables))
    deep = row(14, usual(2), bytes([69, 0]) + b"[" + (60000).to_bytes(2, "little"))  # 69 % 12 == 9
    put_all("run_rows", "bin", {"watched": b"\0" + watched, "watched_loose": b"\1" + watched + meta, "engine": b"\0" + engine, "meta": b"\2" + meta, "edges": b"\3" + edges, "nothing": b"\3" + nothing,
                                "deep": b"\2" + deep, "ordinary": b"\2", "shared": b"\6" + meta})


def shared_memory():
    def change(part, place, data, how=0):
        return bytes([part | how]) + place.to_bytes(2, "little") + bytes([len(data)]) + data

    put_all("shared_memory", "bin", {"plain": b"", "late": change(6, 0, b"\xff" * 8, 8), "sites": change(6, 16 + 16 + 8 + 4, b"\xff" * 4), "text": change(4, 28, b"\xff" * 8), "stack": change(2, 8, b"\xff" * 6),
                                     "ring": change(0, 304, b"\x10" + b"\0" * 7 + b"\xff" * 8), "cut": change(7, 100, b"", 8), "live": change(1, 24, b"\0\0\xc0\x7f" + b"\xff" * 4)})


# make_seeds.py [NAME ...]: these corpora alone.
corpora = [npy, weights_h5, keras_config, csv, tfrecord, example, image, text_lines, npz, agent_notes, python_source, run_file, run_rows, shared_memory]
for corpus in corpora:
    if len(sys.argv) == 1 or corpus.__name__ in sys.argv[1:]:
        corpus()
for path, _, files in os.walk(HERE):
    for f in sorted(files):
        print(os.path.getsize(os.path.join(path, f)), os.path.join(path, f))
