import os

os.environ["KERAS_BACKEND"] = "jax"

import time

import keras
import numpy as np
from keras import layers

EPOCHS = 14


class Report(keras.callbacks.Callback):
    async_safe = True

    def __init__(self):
        super().__init__()
        self.lines = 0

    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.002)
        self.lines += 1


def main():
    rng = np.random.default_rng(5)
    x = rng.random((4096, 32), dtype=np.float32)
    y = x.sum(axis=1, keepdims=True)
    model = keras.Sequential([keras.Input((32,)), layers.Dense(16, activation="relu"), layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    model.fit(x, y, batch_size=16, epochs=EPOCHS, verbose=2, callbacks=[Report()])


if __name__ == "__main__":
    main()
