import keras
import numpy as np
from keras import layers

ROUNDS = 24


def build_model():
    model = keras.Sequential([keras.Input((None, None, 3))])
    for filters in (16, 32, 32):
        model.add(layers.Conv2D(filters, 3, padding="same", activation="relu"))
    model.add(layers.GlobalAveragePooling2D())
    model.add(layers.Dense(10, activation="softmax"))
    return model


def main():
    rng = np.random.default_rng(9)
    model = build_model()
    for k in range(ROUNDS):
        images = rng.random((int(rng.integers(4, 12)), 224, 224, 3), dtype=np.float32)
        top = float(np.asarray(model(images, training=False)).max())
        print(f"round {k}: {len(images)} images, top {top:.3f}", flush=True)


if __name__ == "__main__":
    main()
