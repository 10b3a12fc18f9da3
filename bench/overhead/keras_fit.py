"""Keras on TensorFlow, trained for some epochs: keras_fit.py mlp_small|cnn_224 EPOCHS. Prints microseconds a step for each epoch after the first, as JSON."""
import json
import os
import sys
import time

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np

L = keras.layers
name, epochs = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(0)
if name == "mlp_small":
    x, y = rng.random((10000, 100), dtype=np.float32), rng.integers(0, 2, (10000, 1)).astype(np.float32)
    model, loss, batch = keras.Sequential([keras.Input((100,)), L.Dense(64, "relu"), L.Dense(1, "sigmoid")]), "binary_crossentropy", 32
else:
    x, y = rng.random((192, 224, 224, 3), dtype=np.float32), rng.integers(0, 10, 192)
    model = keras.Sequential([keras.Input((224, 224, 3)), L.Conv2D(32, 3, activation="relu"), L.MaxPooling2D(2), L.Flatten(), L.Dense(10, "softmax")])
    loss, batch = "sparse_categorical_crossentropy", 32
model.compile("adam", loss)


class Clock(keras.callbacks.Callback):
    times = []

    def on_epoch_begin(self, epoch, logs=None):
        self.start = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.times.append(time.perf_counter() - self.start)


clock = Clock()
model.fit(x, y, batch_size=batch, epochs=epochs, verbose=0, callbacks=[clock])
steps = -(-len(x) // batch)
print(json.dumps([t / steps * 1e6 for t in clock.times[1:]]))
