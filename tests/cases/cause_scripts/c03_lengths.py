import keras
import numpy as np
import tensorflow as tf
from keras import layers

EPOCHS = 14
BATCHES = 3
VOCAB = 200

inputs = keras.Input((None,), dtype="int32")
h = layers.Embedding(VOCAB, 24)(inputs)
for _ in range(5):
    h = layers.Conv1D(24, 3, padding="same", activation="relu")(h)
h = layers.GlobalAveragePooling1D()(h)
model = keras.Model(inputs, layers.Dense(1)(h))
optimizer = keras.optimizers.SGD(1e-2)
optimizer.build(model.trainable_variables)


@tf.function
def train_step(tokens, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(tokens, training=True) - y) ** 2)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


def sentences(rng):
    lengths = rng.permutation(np.arange(12, 12 + EPOCHS * BATCHES))
    for length in lengths:
        tokens = rng.integers(0, VOCAB, (16, length)).astype(np.int32)
        yield tf.constant(tokens), tf.constant(tokens[:, :1] / VOCAB, tf.float32)


def main():
    source = sentences(np.random.default_rng(4))
    for epoch in range(EPOCHS):
        losses = []
        for _ in range(BATCHES):
            tokens, y = next(source)
            losses.append(float(train_step(tokens, y)))
        print(f"epoch {epoch}: loss {np.mean(losses):.4f}", flush=True)


if __name__ == "__main__":
    main()
