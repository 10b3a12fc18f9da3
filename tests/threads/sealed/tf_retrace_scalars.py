"""Training in a loop with tf.function: memory keeps rising after each iteration.
tensorflow/tensorflow#62854
A custom training step gets the learning rate as a Python number that changes every epoch."""
import numpy as np
import tensorflow as tf

tf.random.set_seed(0)
layers = [(tf.Variable(tf.random.normal((64, 64), stddev=0.1)), tf.Variable(tf.zeros((64,)))) for _ in range(3)]
variables = [v for pair in layers for v in pair]


def forward(x):
    for weight, bias in layers:
        x = tf.nn.tanh(x @ weight + bias)
    return x


@tf.function
def train_step(x, y, rate):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(forward(x) - y))
    for variable, gradient in zip(variables, tape.gradient(loss, variables)):
        variable.assign_sub(rate * gradient)
    return loss


def main():
    rng = np.random.default_rng(2)
    x = tf.constant(rng.standard_normal((128, 64)), tf.float32)
    y = tf.constant(rng.standard_normal((128, 64)), tf.float32)
    for epoch in range(24):
        rate = 0.1 * 0.97 ** epoch
        for _ in range(10):
            loss = train_step(x, y, rate)
        print(f"epoch {epoch}: {float(loss):.5f}", flush=True)


if __name__ == "__main__":
    main()
