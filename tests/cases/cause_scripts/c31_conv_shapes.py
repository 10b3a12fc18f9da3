import numpy as np
import tensorflow as tf

EPOCHS = 16
SHAPES = 40


def main():
    rng = np.random.default_rng(7)
    sizes = [(int(h), int(w)) for h, w in zip(rng.permutation(np.arange(40, 40 + EPOCHS * SHAPES)) % 97 + 32,
                                              rng.permutation(np.arange(40, 40 + EPOCHS * SHAPES)) % 89 + 32)]
    kernels = [tf.Variable(tf.random.normal((3, 3, 3 if i == 0 else 32, 32), stddev=0.05)) for i in range(4)]
    for epoch in range(EPOCHS):
        total = 0.0
        for h, w in sizes[epoch * SHAPES:(epoch + 1) * SHAPES]:
            x = tf.constant(rng.random((1, h, w, 3), dtype=np.float32))
            with tf.GradientTape() as tape:
                y = x
                for kernel in kernels:
                    y = tf.nn.relu(tf.nn.conv2d(y, kernel, 1, "SAME"))
                loss = tf.reduce_mean(y ** 2)
            for kernel, grad in zip(kernels, tape.gradient(loss, kernels)):
                kernel.assign_sub(0.01 * grad)
            total += float(loss)
        print(f"epoch {epoch}: loss {total / SHAPES:.5f}", flush=True)


if __name__ == "__main__":
    main()
