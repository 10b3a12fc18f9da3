#!/usr/bin/env python3
"""The pipelines of bench/data.py in tf.data: tf_pipelines.py WORK FOLDER EPOCHS, or `make FOLDER` for the files.

CSV has two ways in tf.data, csv (CsvDataset) and csv_lines (TextLineDataset and decode_csv over whole batches); the faster one counts."""
import json
import os
import resource
import sys
import time

import numpy as np


def make_files(folder):
    import tensorflow as tf
    os.makedirs(os.path.join(folder, "images", "a"), exist_ok=True)
    os.makedirs(os.path.join(folder, "images", "b"), exist_ok=True)
    rng = np.random.default_rng(1)
    np.save(os.path.join(folder, "x.npy"), rng.random((400_000, 32), dtype=np.float32))
    np.save(os.path.join(folder, "y.npy"), rng.integers(0, 10, 400_000).astype(np.int32))
    with open(os.path.join(folder, "rows.csv"), "w") as out:
        out.write(",".join(f"f{i}" for i in range(10)) + ",label\n")
        values, labels = rng.normal(size=(200_000, 10)), rng.integers(0, 5, 200_000)
        for row, label in zip(values, labels):
            out.write(",".join(f"{v:.6g}" for v in row) + f",{label}\n")
    for i in range(300):  # soft shapes with some grain, as photographs have
        y, x = np.mgrid[0:240, 0:320] / 40.0
        image = 127 + 90 * np.stack([np.sin(x + i), np.cos(y * 1.3 + i), np.sin(x + y + i)], -1) + rng.normal(0, 8, (240, 320, 3))
        data = tf.io.encode_jpeg(np.clip(image, 0, 255).astype(np.uint8), quality=90).numpy()
        with open(os.path.join(folder, "images", "ab"[i % 2], f"{i:04}.jpg"), "wb") as out:
            out.write(data)


def pipeline(work, folder):
    import tensorflow as tf
    auto = tf.data.AUTOTUNE
    if work == "arrays":
        x, y = np.load(os.path.join(folder, "x.npy")), np.load(os.path.join(folder, "y.npy"))
        return tf.data.Dataset.from_tensor_slices((x, y)).shuffle(10_000, seed=1).batch(128).prefetch(auto)
    if work == "csv":
        d = tf.data.experimental.CsvDataset(os.path.join(folder, "rows.csv"), [tf.float32] * 10 + [tf.int64], header=True)
        return d.batch(256).map(lambda *c: (tf.stack(c[:-1], axis=1), c[-1]), num_parallel_calls=auto).prefetch(auto)
    if work == "csv_lines":
        def parse(lines):
            c = tf.io.decode_csv(lines, [0.0] * 10 + [tf.constant(0, tf.int64)])
            return tf.stack(c[:-1], axis=1), c[-1]
        return tf.data.TextLineDataset(os.path.join(folder, "rows.csv")).skip(1).batch(256).map(parse, num_parallel_calls=auto).prefetch(auto)
    if work == "images":
        root = os.path.join(folder, "images")
        files = [(os.path.join(root, c, f), i) for i, c in enumerate("ab") for f in sorted(os.listdir(os.path.join(root, c)))]

        def read(path, label):
            image = tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(path), channels=3), (180, 180))
            image = tf.image.random_crop(image, (160, 160, 3))
            image = tf.image.random_flip_left_right(image)
            return tf.clip_by_value(tf.image.random_brightness(image, 25.5), 0, 255), label
        d = tf.data.Dataset.from_tensor_slices(([f for f, _ in files], np.array([i for _, i in files], np.int32)))
        return d.map(read, num_parallel_calls=auto).batch(32).prefetch(auto)
    sys.exit(f"tf_pipelines: '{work}' is not known")


def main():
    if sys.argv[1] == "make":
        return make_files(sys.argv[2])
    d = pipeline(sys.argv[1], sys.argv[2])
    seconds, elements, sum_x, sum_y = [], 0, 0.0, 0.0
    for epoch in range(int(sys.argv[3])):
        start = time.perf_counter()
        elements = 0
        for x, y in d:
            elements += x.shape[0]
            if epoch == 0:
                sum_x += float(np.sum(x.numpy(), dtype=np.float64))
                sum_y += float(np.sum(y.numpy(), dtype=np.float64))
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"elements": elements, "seconds": seconds, "sum_x": sum_x, "sum_y": sum_y,
                      "rss_peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


main()
