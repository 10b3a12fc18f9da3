import gc

import numpy as np
import tensorflow as tf

CANDIDATES = 16
WIDTH = 48


def make_step(depth, rate):
    weights = [tf.Variable(tf.random.normal((WIDTH, WIDTH), stddev=0.1)) for _ in range(depth)]

    @tf.function(jit_compile=True)
    def step(x, y):
        with tf.GradientTape() as tape:
            h = x
            for w in weights:
                h = tf.nn.relu(h @ w) + h
            loss = tf.reduce_mean((h - y) ** 2)
        for w, g in zip(weights, tape.gradient(loss, weights)):
            w.assign_sub(rate * g)
        return loss

    return step


def main():
    rng = np.random.default_rng(3)
    x = tf.constant(rng.random((128, WIDTH), dtype=np.float32))
    scores = []
    for candidate in range(CANDIDATES):
        step = make_step(8 + candidate % 3, 10 ** rng.uniform(-4, -2))
        for _ in range(15):
            loss = step(x, 2 * x)
        scores.append(float(loss))
        del step
        gc.collect()
        print(f"candidate {candidate}: loss {scores[-1]:.4f}", flush=True)
    print("best", int(np.argmin(scores)))


if __name__ == "__main__":
    main()
