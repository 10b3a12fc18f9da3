import keras
import numpy as np
import tensorflow as tf
from keras import layers

EPOCHS = 12
STEPS = 4
WIDTH = 24

model = keras.Sequential([keras.Input((WIDTH,))])
for _ in range(8):
    model.add(layers.Dense(WIDTH, activation="tanh"))
model.add(layers.Dense(1))
optimizer = keras.optimizers.SGD(1e-2)
optimizer.build(model.trainable_variables)


@tf.function
def train_step(x, y, loss_fn):
    with tf.GradientTape() as tape:
        loss = loss_fn(model(x, training=True), y)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


def main():
    rng = np.random.default_rng(1)
    for epoch in range(EPOCHS):
        total = 0.0
        for _ in range(STEPS):
            x = tf.constant(rng.random((64, WIDTH), dtype=np.float32))
            y = tf.reduce_sum(x, axis=1, keepdims=True)
            total += float(train_step(x, y, lambda p, t: tf.reduce_mean((p - t) ** 2)))
        print(f"epoch {epoch}: loss {total / STEPS:.4f}", flush=True)


if __name__ == "__main__":
    main()
