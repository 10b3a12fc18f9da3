import tempfile

import keras
import numpy as np
from keras import layers

EPOCHS = 24


def main():
    rng = np.random.default_rng(5)
    x = rng.random((512, 64), dtype=np.float32)
    y = x.sum(axis=1, keepdims=True)
    model = keras.Sequential([keras.Input((64,)), layers.Dense(600, activation="relu"), layers.Dense(600, activation="relu"), layers.Dense(1)])
    model.compile(optimizer="adam", loss="mse")
    with tempfile.TemporaryDirectory() as logs:
        board = keras.callbacks.TensorBoard(logs, histogram_freq=1)
        model.fit(x, y, batch_size=64, epochs=EPOCHS, callbacks=[board], verbose=2)


if __name__ == "__main__":
    main()
