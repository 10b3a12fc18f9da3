import numpy as np
import tensorflow as tf

SHARDS = 16
ROWS = 5000
WIDTH = 64

w = tf.Variable(tf.zeros((WIDTH, 1)))


def make_pass(table, target):
    @tf.function
    def one_pass(rate):
        gap = tf.constant(table) @ w - tf.constant(target)
        w.assign_sub(rate * tf.transpose(tf.constant(table)) @ gap / len(table))
        return tf.reduce_mean(gap ** 2)

    return one_pass


def main():
    passes = {}
    for shard in range(SHARDS):
        rng = np.random.default_rng(shard)
        table = rng.random((ROWS, WIDTH), dtype=np.float32)
        passes[shard] = make_pass(table, table.sum(axis=1, keepdims=True))
        for _ in range(4):
            loss = passes[shard](tf.constant(0.01))
        print(f"shard {shard}: loss {float(loss):.3f}", flush=True)


if __name__ == "__main__":
    main()
