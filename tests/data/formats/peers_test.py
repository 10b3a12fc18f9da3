"""The format readers beside TensorFlow, Pillow, NumPy and Python's csv, in both directions: formats_tool reads what they
wrote, and they read what it wrote. Runs under .venv-peers."""
import binascii
import csv
import gzip
import io
import os
import random
import struct
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import tensorflow as tf

TOOL = os.path.join(os.environ.get("MILLPOND_BUILD_DIR", "build"), "tests", "formats_tool")
checks = 0


def check(condition, sentence):
    global checks
    checks += 1
    if not condition:
        sys.exit(f"not true: {sentence}")


def tool(*args, stdin=None):
    r = subprocess.run([TOOL, *map(str, args)], capture_output=True, text=True, input=stdin)
    if r.returncode:
        sys.exit(f"formats_tool {' '.join(map(str, args))} failed: {r.stderr}")
    return r.stdout


def refused(*args):
    r = subprocess.run([TOOL, *map(str, args)], capture_output=True, text=True)
    return r.stderr if r.returncode == 1 else f"not refused ({r.returncode}): {r.stdout}"


def tfrecords(folder):
    rng = random.Random(1)
    records = [bytes(rng.randrange(256) for _ in range(rng.choice([0, 1, 11, 300, 70000]))) for _ in range(40)]
    for how in ["", "GZIP", "ZLIB"]:
        theirs, ours = f"{folder}/theirs{how}", f"{folder}/ours{how}"
        with tf.io.TFRecordWriter(theirs, tf.io.TFRecordOptions(compression_type=how)) as w:
            for r in records:
                w.write(r)
        got = [binascii.unhexlify(line) for line in tool("records", theirs, how).splitlines()]
        check(got == records, f"records written by TensorFlow ({how or 'plain'}) are read back")
        tool("write-records", ours, how, stdin="".join(r.hex() + "\n" for r in records))
        back = [bytes(r.numpy()) for r in tf.data.TFRecordDataset(ours, compression_type=how)]
        check(back == records, f"TensorFlow reads the records written here ({how or 'plain'})")
        if not how:
            check(open(ours, "rb").read() == open(theirs, "rb").read(), "plain files are the same byte by byte")
            bad = bytearray(open(theirs, "rb").read())
            bad[20] ^= 1
            open(f"{folder}/bad", "wb").write(bad)
            check("expected" in refused("records", f"{folder}/bad", ""), "a changed byte is refused")


def examples(folder):
    rng = np.random.default_rng(2)
    made = []
    for i in range(30):
        f = {
            "ints": tf.train.Feature(int64_list=tf.train.Int64List(value=rng.integers(-(2**63), 2**63 - 1, i % 5).tolist())),
            "floats": tf.train.Feature(float_list=tf.train.FloatList(value=rng.normal(size=i).tolist())),
            "words": tf.train.Feature(bytes_list=tf.train.BytesList(value=[rng.bytes(n) for n in range(i % 4)])),
            "nothing": tf.train.Feature(),
            "näme": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
        }
        made.append(tf.train.Example(features=tf.train.Features(feature=f)))
    path = f"{folder}/examples"
    with tf.io.TFRecordWriter(path, tf.io.TFRecordOptions(compression_type="GZIP")) as w:
        for e in made:
            w.write(e.SerializeToString())

    def shown(e):
        lines = []
        for name in sorted(e.features.feature, key=lambda s: s.encode()):
            f = e.features.feature[name]
            kind = f.WhichOneof("kind")
            if kind == "bytes_list":
                lines.append(" ".join([name, "bytes", *(v.hex() for v in f.bytes_list.value)]))
            elif kind == "float_list":
                lines.append((name, "float", list(f.float_list.value)))
            elif kind == "int64_list":
                lines.append(" ".join([name, "int64", *map(str, f.int64_list.value)]))
            else:
                lines.append(f"{name} nothing")
        return lines

    got = [block.splitlines() for block in tool("examples", path, "GZIP").split("--\n")[:-1]]
    check(len(got) == len(made), "as many examples as were written")
    for lines, e in zip(got, made):
        for line, wanted in zip(lines, shown(e), strict=True):
            if isinstance(wanted, tuple):
                words = line.split(" ")
                check(words[:2] == list(wanted[:2]) and [np.float32(v) for v in words[2:]] == [np.float32(v) for v in wanted[2]], f"floats of {line}")
            else:
                check(line.split() == wanted.split(), f"{line} is {wanted}")
    tool("copy-examples", path, f"{folder}/copy", "GZIP")
    back = [tf.train.Example.FromString(r.numpy()) for r in tf.data.TFRecordDataset(f"{folder}/copy", compression_type="GZIP")]
    for a, b in zip(made, back, strict=True):
        a = tf.train.Example.FromString(a.SerializeToString())
        del a.features.feature["nothing"]  # a feature without a kind is not written again
        check(a == b, "TensorFlow reads the examples encoded here as equal ones")
    # Unpacked lists, which old writers made: field 1 again and again.
    unpacked = b"".join(b"\x08" + bytes([v]) for v in [1, 2, 127]) + b"\x0a\x02\xac\x02"
    feature = b"\x1a" + bytes([len(unpacked)]) + unpacked
    entry = b"\x0a\x01i\x12" + bytes([len(feature)]) + feature
    features = b"\x0a" + bytes([len(entry)]) + entry
    message = b"\x0a" + bytes([len(features)]) + features
    check(list(tf.train.Example.FromString(message).features.feature["i"].int64_list.value) == [1, 2, 127, 300], "protobuf itself takes them")
    with tf.io.TFRecordWriter(f"{folder}/unpacked") as w:
        w.write(message)
    check(tool("examples", f"{folder}/unpacked", "") == "i int64 1 2 127 300\n--\n", "unpacked int64 are read")


def csvs(folder):
    rng = random.Random(3)
    path = f"{folder}/a.csv"
    for dialect in [dict(), dict(delimiter=";"), dict(quoting=csv.QUOTE_ALL), dict(lineterminator="\n"), dict(delimiter="\t", lineterminator="\n")]:
        rows = []
        for i in range(500):
            word = "".join(rng.choice('ab",;\t\n xyzé') for _ in range(rng.randrange(12)))
            rows.append([rng.randrange(-(10**9), 10**9), rng.choice([repr(rng.gauss(0, 1)), f"{rng.random():.6f}", f"{rng.gauss(0, 1) * 10.0 ** rng.randrange(-40, 40):.8e}", ""]),
                         rng.choice(["True", "False"]), word + "w"])
        with open(path, "w", newline="", encoding="utf-8") as f:
            w = csv.writer(f, **dialect)
            w.writerow(["n", "value", "yes", "word"])
            w.writerows(rows)
        for floats, number in [("float32", np.float32), ("float64", np.float64)]:
            lines = tool("csv", path, f"delimiter={dialect.get('delimiter', ',')}", f"floats={floats}").splitlines()
            check(lines[0] == f"n:int64\tvalue:{floats}\tyes:bool\tword:text", f"types of a table: {lines[0]}")
            with open(path, newline="", encoding="utf-8") as f:
                wanted = list(csv.reader(f, **dialect))[1:]
            check(len(lines) - 1 == len(wanted), "as many rows as Python's csv finds")
            for line, row in zip(lines[1:], wanted):
                cells = line.split("\t")
                check(cells[0] == row[0] and cells[2] == row[2] and binascii.unhexlify(cells[3]).decode() == row[3], f"{cells} is {row}")
                with np.errstate(over="ignore"):
                    value = number(row[1] or "nan")
                check(np.array_equal(number(cells[1]), value, equal_nan=True), f"{cells[1]} is {row[1]}")
    with open(path, "rb") as f, gzip.open(f"{path}.gz", "wb") as z:
        z.write(f.read())
    check(tool("csv", f"{path}.gz", "delimiter=\t", "compression=gzip") == tool("csv", path, "delimiter=\t"), "a gzip CSV reads as the plain one")

    # tf.data's own reader on the same table of numbers.
    table = np.random.default_rng(4).normal(size=(200, 5)).astype(np.float32)
    np.savetxt(path, table, fmt="%.9g", delimiter=",", header="a,b,c,d,e", comments="")
    theirs = np.array([[float(v) for v in row] for row in tf.data.experimental.CsvDataset(path, [tf.float32] * 5, header=True)], np.float32)
    ours = np.array([[np.float32(v) for v in line.split("\t")] for line in tool("csv", path).splitlines()[1:]])
    check(np.array_equal(ours, theirs) and np.array_equal(ours, table), "the same numbers as tf.data.experimental.CsvDataset, bit by bit")


def images(folder):
    rng = np.random.default_rng(5)
    y, x = np.mgrid[0:120, 0:161]
    smooth = np.stack([127 + 100 * np.sin(x / 17 + c) * np.cos(y / 11) for c in range(3)], -1)
    picture = np.clip(smooth + rng.normal(size=smooth.shape) * 6, 0, 255).astype(np.uint8)
    worst = 0
    for name, encoded in [
        ("plain.jpg", tf.io.encode_jpeg(picture, quality=90)),
        ("progressive.jpg", tf.io.encode_jpeg(picture, quality=90, progressive=True)),
        ("full.jpg", tf.io.encode_jpeg(picture, quality=97, chroma_downsampling=False)),
        ("grey.jpg", tf.io.encode_jpeg(picture[..., :1], format="grayscale")),
        ("odd.jpg", tf.io.encode_jpeg(picture[:37, :53])),
        ("colour.png", tf.io.encode_png(picture)),
        ("grey.png", tf.io.encode_png(picture[..., :1])),
        ("alpha.png", tf.io.encode_png(np.concatenate([picture, picture[..., :1]], -1))),
        ("greyalpha.png", tf.io.encode_png(picture[..., :2])),
        ("deep.png", tf.io.encode_png(rng.integers(0, 65536, (20, 30, 3)).astype(np.uint16))),
    ]:
        path, out = f"{folder}/{name}", f"{folder}/out"
        open(path, "wb").write(encoded.numpy())
        for channels in [3, 1] if "colour.png" not in name and "alpha.png" != name and name != "deep.png" else [3]:
            size = tuple(map(int, tool("image", path, out, channels).split()))
            got = np.fromfile(out, np.uint8).reshape(size)
            # INTEGER_ACCURATE: what libjpeg-turbo does unless told otherwise.
            wanted = (tf.io.decode_jpeg(encoded, channels, dct_method="INTEGER_ACCURATE") if name.endswith("jpg") else tf.io.decode_png(encoded, channels)).numpy()
            check(got.shape == wanted.shape, f"{name}: {got.shape} is {wanted.shape}")
            difference = np.abs(got.astype(int) - wanted.astype(int)).max()
            worst = max(worst, difference)
            # The transform is exact integer arithmetic in both; merged or SIMD upsampling and colour conversion may each
            # round once differently: one unit, and the conversion multiplies a unit of chroma by up to 1.772.
            check(difference <= (0 if name.endswith("png") else 2), f"{name} with {channels} channels is within its tolerance, not {difference}")
    # A quarter of the size, as TensorFlow's ratio.
    size = tuple(map(int, tool("image", f"{folder}/plain.jpg", f"{folder}/out", 3, 60, 80).split()))
    check(size == (60, 81, 3), f"half the size is 60 x 81, not {size}")
    got = np.fromfile(f"{folder}/out", np.uint8).reshape(size)
    wanted = tf.io.decode_jpeg(open(f"{folder}/plain.jpg", "rb").read(), 3, ratio=2, dct_method="INTEGER_ACCURATE").numpy()
    check(np.abs(got.astype(int) - wanted.astype(int)).max() <= 2, "half the size has TensorFlow's pixels")
    try:
        from PIL import Image
    except ImportError:
        Image = None
    if Image:
        for name in ["plain.jpg", "progressive.jpg", "odd.jpg", "colour.png"]:
            size = tuple(map(int, tool("image", f"{folder}/{name}", f"{folder}/out", 3).split()))
            got = np.fromfile(f"{folder}/out", np.uint8).reshape(size)
            difference = np.abs(got.astype(int) - np.asarray(Image.open(f"{folder}/{name}").convert("RGB")).astype(int)).max()
            check(difference <= (0 if name.endswith("png") else 2), f"{name} is what Pillow reads, within its tolerance, not {difference}")
        cmyk = Image.fromarray(picture).convert("CMYK")
        cmyk.save(f"{folder}/cmyk.jpg", quality=95)
        size = tuple(map(int, tool("image", f"{folder}/cmyk.jpg", f"{folder}/out", 3).split()))
        got = np.fromfile(f"{folder}/out", np.uint8).reshape(size)
        wanted = tf.io.decode_jpeg(open(f"{folder}/cmyk.jpg", "rb").read(), 3, dct_method="INTEGER_ACCURATE").numpy()
        check(np.abs(got.astype(int) - wanted.astype(int)).max() <= 2, "CMYK becomes RGB as in TensorFlow")
    print(f"images: at most {worst} apart")


def resizes(folder):
    rng = np.random.default_rng(6)
    worst = 0
    for h, w, oh, ow, c in [(10, 10, 5, 5, 3), (7, 9, 20, 31, 3), (64, 48, 224, 224, 3), (300, 401, 224, 224, 3), (33, 47, 32, 1, 1), (5, 5, 5, 9, 4)]:
        for kind, x in [("u8", rng.integers(0, 256, (h, w, c)).astype(np.uint8)), ("f32", rng.normal(size=(h, w, c)).astype(np.float32))]:
            x.tofile(f"{folder}/in")
            for method in ["bilinear", "nearest"]:
                tool("resize", f"{folder}/in", f"{folder}/out", h, w, c, kind, method, oh, ow)
                wanted = tf.image.resize(x, (oh, ow), method, antialias=False).numpy()
                got = np.fromfile(f"{folder}/out", wanted.dtype).reshape(oh, ow, c)
                if method == "nearest":
                    check(np.array_equal(got, wanted), f"nearest {h}x{w} to {oh}x{ow} is TensorFlow's")
                    continue
                # The same three interpolations in float32; TensorFlow's build may fuse a multiply and an add in each.
                difference = np.abs(got - wanted).max()
                worst = max(worst, difference / max(1, np.abs(x).max()))
                check(difference <= 6 * 2.0**-24 * max(1, np.abs(x).max()), f"bilinear {h}x{w} to {oh}x{ow} of {kind} is TensorFlow's, apart from {difference}")
    print(f"resize: at most {worst:.3g} of the largest value apart")


def folders(folder):
    import keras

    root = f"{folder}/pictures"
    for name in ["b/2.jpg", "b/10.jpg", "a/x.png", "a/sub/y.png", "a/s-b/z.png", "c/w.JPG"]:
        os.makedirs(os.path.dirname(f"{root}/{name}"), exist_ok=True)
        pixels = np.zeros((4, 4, 3), np.uint8)
        open(f"{root}/{name}", "wb").write((tf.io.encode_png(pixels) if name.endswith("png") else tf.io.encode_jpeg(pixels)).numpy())
    open(f"{root}/a/notes.txt", "w").close()
    d = keras.utils.image_dataset_from_directory(root, shuffle=False, image_size=(4, 4), verbose=False)
    classes, files = tool("folder", root).split("--\n")
    check(classes.split() == d.class_names, "the classes of Keras, in its order")
    ours = [line.rsplit(" ", 1) for line in files.splitlines()]
    check([p for p, _ in ours] == d.file_paths, f"the files of Keras, in its order: {ours} and {d.file_paths}")
    labels = np.concatenate([y.numpy() for _, y in d])
    check([int(label) for _, label in ours] == labels.tolist(), "with the labels of Keras")


def npzs(folder):
    rng = np.random.default_rng(7)
    arrays = {
        "x": rng.normal(size=(50, 3, 2)).astype(np.float32),
        "y": rng.integers(0, 10, 50),
        "half": rng.normal(size=7).astype(np.float16),
        "flag": rng.integers(0, 2, 9).astype(bool),
        "scalar": np.float64(3.5),
        "none": np.zeros((0, 4), np.uint8),
        "large": np.zeros((3000, 100), np.float64),
    }
    for save, how in [(np.savez, "stored"), (np.savez_compressed, "deflated")]:
        save(f"{folder}/a.npz", **arrays)
        for name, x in arrays.items():
            said = tool("npz", f"{folder}/a.npz", name, f"{folder}/out").split()
            check(said[0] == np.asarray(x).dtype.name and said[-1] == how, f"{name}: {said}")
            check(open(f"{folder}/out", "rb").read() == np.ascontiguousarray(x).tobytes(), f"{name} of a {how} archive has NumPy's values")
    np.savez(f"{folder}/b.npz", np.arange(3), np.arange(4))
    tool("npz", f"{folder}/b.npz", "arr_1", f"{folder}/out")
    check(np.array_equal(np.fromfile(f"{folder}/out", np.int64), np.arange(4)), "arrays without names are arr_0, arr_1")


def texts(folder):
    lines = ["héllo", "", "x" * 1000, "last"]
    open(f"{folder}/t.txt", "w", newline="").write("\r\n".join(lines))
    with gzip.open(f"{folder}/t.gz", "wt", newline="") as f:
        f.write("\n".join(lines))
    check([x.numpy().decode() for x in tf.data.TextLineDataset(f"{folder}/t.txt")] == lines, "what tf.data reads")
    check(tool("text", f"{folder}/t.txt") == tool("text", f"{folder}/t.gz"), "the same lines plain and gzip")
    check(tool("text", f"{folder}/t.txt").startswith("4 "), "four lines")


with tempfile.TemporaryDirectory() as folder:
    for part in [tfrecords, examples, csvs, images, resizes, folders, npzs, texts]:
        part(folder)
print(f"{checks} checks")
