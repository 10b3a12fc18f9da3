"""Keras takes more and more memory with each round of cross validation.
keras-team/keras#2102
Fits a Keras model and stores the predictions of the validation part in a callback after each epoch."""
import keras
import numpy as np

keras.utils.set_random_seed(3)


class KeepPredictions(keras.callbacks.Callback):
    def __init__(self, x):
        super().__init__()
        self.x = x
        self.by_epoch = {}

    def on_epoch_end(self, epoch, logs=None):
        scores = self.model.predict_on_batch(self.x)
        self.by_epoch[epoch] = scores
        print(f"epoch {epoch}: top {scores.max():.4f}", flush=True)


def main():
    rng = np.random.default_rng(0)
    x = rng.random((2000, 50), dtype=np.float32)
    y = rng.integers(0, 200, 2000)
    model = keras.Sequential([keras.Input((50,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(200, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy")
    keep = KeepPredictions(rng.random((3000, 50), dtype=np.float32))
    model.fit(x, y, epochs=40, batch_size=50, verbose=0, callbacks=[keep])


main()
