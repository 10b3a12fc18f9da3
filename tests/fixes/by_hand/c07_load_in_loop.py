import os
import tempfile

import keras
import numpy as np
from keras import layers

ROUNDS = 16


def build_model():
    model = keras.Sequential([keras.Input((64,))])
    for _ in range(6):
        model.add(layers.Dense(400, activation="relu"))
    model.add(layers.Dense(1))
    model.compile(optimizer="adam", loss="mse")
    return model


def main():
    rng = np.random.default_rng(2)
    x = rng.random((256, 64), dtype=np.float32)
    y = x.mean(axis=1, keepdims=True)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "current.keras")
        build_model().save(path)
        model = keras.models.load_model(path)
        for k in range(ROUNDS):
            model.load_weights(path)
            loss = model.fit(x, y, batch_size=64, verbose=0).history["loss"][-1]
            model.save(path)
            print(f"round {k}: loss {loss:.5f}", flush=True)


if __name__ == "__main__":
    main()
