import keras
import numpy as np
import tensorflow as tf
from keras import layers

STEPS = 60
EPOCHS = 16
WIDTH = 32

model = keras.Sequential([keras.Input((WIDTH,)), layers.Dense(WIDTH, activation="relu"),
                          layers.Dense(WIDTH, activation="relu"), layers.Dense(1)])
optimizer = keras.optimizers.Adam(1e-3)
optimizer.build(model.trainable_variables)


@tf.function
def train(batches_x, batches_y):
    total = 0.0
    for i in range(STEPS):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(batches_x[i], training=True) - batches_y[i]) ** 2)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        total += loss
    return total / STEPS


def main():
    rng = np.random.default_rng(0)
    x = tf.constant(rng.random((STEPS, 32, WIDTH), dtype=np.float32))
    y = tf.reduce_mean(x, axis=2, keepdims=True)
    print("epoch 0: start", flush=True)
    for epoch in range(1, EPOCHS + 1):
        loss = float(train(x, y))
        for _ in range(20):
            loss = min(loss, float(train(x, y)))
        print(f"epoch {epoch}: loss {loss:.5f}", flush=True)


if __name__ == "__main__":
    main()
