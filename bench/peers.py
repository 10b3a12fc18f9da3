"""One training run of a peer in a process of its own, for run.py: the same model, arrays, batch, epochs and shuffling.

  peers.py arrays WORK FOLDER             writes x.npy and y.npy (uniform values and labels, seed 0)
  peers.py keras-tf|keras-jax|jax WORK X.npy Y.npy [EPOCHS]

Prints one JSON line. BENCH_STARTED is the monotonic clock when this process was started."""
import json
import os
import statistics
import sys
import time

from turns import my_turn
from works import WORKS


def memory(key):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(key))


class Epochs:
    """Seconds, resident bytes and loss of every epoch."""

    def __init__(self):
        self.seconds, self.resident, self.loss, self.first = [], [], [], None

    def begin(self):
        my_turn()
        self.began = time.perf_counter()

    def end(self, loss):
        self.seconds.append(time.perf_counter() - self.began)
        if self.first is None:
            self.first = time.monotonic() - float(os.environ.get("BENCH_STARTED", "nan"))
        self.resident.append(memory("VmRSS"))
        self.loss.append(float(loss))


def make_arrays(work, folder):
    import numpy as np

    rng = np.random.default_rng(0)
    x = rng.random((work.samples, *work.shape), dtype=np.float32)
    if work.classes == 2:
        y = rng.integers(0, 2, (work.samples, 1)).astype(np.float32)
    else:
        y = rng.integers(0, work.classes, work.samples).astype(np.int32)
    os.makedirs(folder, exist_ok=True)
    np.save(os.path.join(folder, "x.npy"), x)
    np.save(os.path.join(folder, "y.npy"), y)


def with_keras(backend, work, x, y, epochs, seen):
    os.environ["KERAS_BACKEND"] = backend
    import keras
    from keras import layers as L

    if work.name == "resnet50":
        model = keras.applications.ResNet50(weights=None)
        optimizer = keras.optimizers.SGD(0.01, momentum=0.9)
    else:
        hidden = {
            "tiny": [L.Dense(8, "relu")],
            "mlp_small": [L.Dense(64, "relu")],
            "mlp_large": [L.Dense(512, "relu"), L.Dropout(0.5), L.Dense(256, "relu"), L.Dropout(0.5)],
            "mlp_784": [L.Dense(512, "relu"), L.Dense(512, "relu")],
            "cnn_224": [L.Conv2D(32, 3, activation="relu"), L.MaxPooling2D(2), L.Flatten()],
        }[work.name]
        last = L.Dense(1, "sigmoid") if work.classes == 2 else L.Dense(work.classes, "softmax")
        model = keras.Sequential([keras.Input(work.shape), *hidden, last])
        optimizer = "adam"
    loss = "binary_crossentropy" if work.classes == 2 else "sparse_categorical_crossentropy"
    model.compile(optimizer, loss, metrics=["accuracy"])

    class Watch(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            seen.begin()

        def on_epoch_end(self, epoch, logs=None):
            seen.end(logs["loss"])

    model.fit(x, y, batch_size=work.batch, epochs=epochs, shuffle=True, verbose=0, callbacks=[Watch()])


def with_jax(work, x, y, epochs, seen):
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax

    rng = np.random.default_rng(1)
    widths = {"tiny": (4, 8, 1), "mlp_small": (100, 64, 1), "mlp_large": (200, 512, 256, 1),
              "mlp_784": (784, 512, 512, 10), "cnn_224": (111 * 111 * 32, 10)}[work.name]

    def glorot(*shape):
        fan_in, fan_out = int(np.prod(shape[:-1])), shape[-1] * int(np.prod(shape[:-2]))
        limit = (6 / (fan_in + fan_out)) ** 0.5
        return jnp.asarray(rng.uniform(-limit, limit, shape), jnp.float32)

    weights = {"dense": [(glorot(a, b), jnp.zeros(b)) for a, b in zip(widths, widths[1:])]}
    if work.name == "cnn_224":
        weights["conv"] = (glorot(3, 3, 3, 32), jnp.zeros(32))

    def forward(weights, x, key):
        if "conv" in weights:
            kernel, bias = weights["conv"]
            x = jax.lax.conv_general_dilated(x, kernel, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = jax.nn.relu(x + bias)
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
            x = x.reshape(x.shape[0], -1)
        *hidden, (kernel, bias) = weights["dense"]
        for w, b in hidden:
            x = jax.nn.relu(x @ w + b)
            if work.name == "mlp_large":
                key, use = jax.random.split(key)
                x = jnp.where(jax.random.bernoulli(use, 0.5, x.shape), 2 * x, 0)
        return x @ kernel + bias

    def loss_of(weights, x, y, key):
        logits = forward(weights, x, key)
        if work.classes == 2:
            return optax.sigmoid_binary_cross_entropy(logits, y).mean()
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

    adam = optax.adam(1e-3)

    def step(weights, slots, x, y, key):
        loss, gradients = jax.value_and_grad(loss_of)(weights, x, y, key)
        change, slots = adam.update(gradients, slots, weights)
        return optax.apply_updates(weights, change), slots, loss

    step = jax.jit(step, donate_argnums=(0, 1))
    slots, key = adam.init(weights), jax.random.key(0)
    for _ in range(epochs):
        seen.begin()
        order, losses = rng.permutation(len(x)), []
        for i in range(work.steps):
            rows = order[i * work.batch:(i + 1) * work.batch]
            if work.name == "mlp_large":
                key, use = jax.random.split(key)
            else:
                use = key
            weights, slots, loss = step(weights, slots, x[rows], y[rows], use)
            losses.append(loss)
        losses[-1].block_until_ready()
        seconds = time.perf_counter() - seen.began
        mean = float(np.mean([float(v) for v in losses]))  # telling the loss is not a part of the step
        seen.end(mean)
        seen.seconds[-1] = seconds


def main():
    who, work = sys.argv[1], WORKS[sys.argv[2]]
    if who == "arrays":
        return make_arrays(work, sys.argv[3])
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    import numpy as np

    x, y = np.load(sys.argv[3]), np.load(sys.argv[4])
    epochs = int(sys.argv[5]) if len(sys.argv) > 5 else work.epochs
    seen = Epochs()
    if who == "jax":
        with_jax(work, x, y, epochs, seen)
    else:
        with_keras({"keras-tf": "tensorflow", "keras-jax": "jax"}[who], work, x, y, epochs, seen)
    steps = [seconds / work.steps * 1e6 for seconds in seen.seconds[1:]]
    print(json.dumps({"us_per_step": statistics.median(steps), "us_per_step_min": min(steps), "us_per_step_by_epoch": steps,
                      "first_epoch_s": seen.first, "rss_peak": memory("VmHWM"), "rss_per_epoch": seen.resident, "loss_per_epoch": seen.loss}))


main()
