import keras
import numpy as np
from keras import layers

EPOCHS = 14


def build_model():
    model = keras.Sequential([keras.Input((40,)), layers.Dense(64, activation="relu"), layers.Dense(500)])
    model.compile(optimizer="adam", loss="mse")
    return model


def main():
    rng = np.random.default_rng(5)
    x = rng.random((2048, 40), dtype=np.float32)
    y = rng.random((2048, 500), dtype=np.float32)
    x_all = rng.random((60000, 40), dtype=np.float32)
    model = build_model()
    for epoch in range(EPOCHS):
        loss = model.fit(x, y, batch_size=64, verbose=0).history["loss"][0]
        spread = float(model.predict(x_all, batch_size=256, verbose=0).std())
        print(f"epoch {epoch}: loss {loss:.4f} spread {spread:.4f}", flush=True)


if __name__ == "__main__":
    main()
