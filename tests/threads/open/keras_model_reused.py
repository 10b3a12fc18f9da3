"""Creating a model for each variant fills the memory; one model whose weights are set back does not.
keras-team/keras#9345
Cross-validates one Keras model: its first weights are put back before each fold."""
import keras
import numpy as np

keras.utils.set_random_seed(1)
rng = np.random.default_rng(8)
x = rng.random((1200, 20), dtype=np.float32)
y = (x.sum(axis=1) > 10).astype(np.float32)
FOLDS, BATCH = 40, 60


def build():
    model = keras.Sequential([keras.Input((20,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "binary_crossentropy")
    return model


def fold(model, number):
    held_out = np.arange(len(x)) % FOLDS == number
    order = rng.permutation(np.flatnonzero(~held_out))
    for start in range(0, len(order) - BATCH, BATCH):
        rows = order[start:start + BATCH]
        model.train_on_batch(x[rows], y[rows])
    scores = np.asarray(model(x[held_out]))[:, 0]
    return float(((scores > 0.5) == y[held_out]).mean())


def main():
    model = build()
    first = model.get_weights()
    results = []
    for number in range(FOLDS):
        model.set_weights(first)
        results.append(fold(model, number))
        print(f"fold {number}: {results[-1]:.3f}", flush=True)
    print(np.mean(results))


if __name__ == "__main__":
    main()
