"""The compilation cache grows with every new shape; with a few padded shapes it stops.
jax-ml/jax#2072
Pads sequences to one of a few lengths before a jitted step, so that only few versions are compiled."""
import jax
import jax.numpy as jnp
import numpy as np

BUCKETS = (32, 64, 96, 128, 192, 256)


@jax.jit
def step(weights, x):
    def objective(w):
        hidden = jnp.tanh(x @ w)
        for _ in range(4):
            hidden = jnp.tanh(hidden @ w)
        return jnp.square(hidden).mean()
    return weights - 0.05 * jax.grad(objective)(weights)


def pad(sequence):
    length = next(bucket for bucket in BUCKETS if bucket >= len(sequence))
    return np.pad(sequence, ((0, length - len(sequence)), (0, 0)))


def main():
    rng = np.random.default_rng(4)
    weights = jnp.eye(48)
    for epoch in range(60):
        longest = 40 + 5 * epoch if epoch < 40 else 240
        for _ in range(120):
            sequence = rng.random((int(rng.integers(10, min(longest, 256))), 48), dtype=np.float32)
            weights = step(weights, pad(sequence))
        print(f"epoch {epoch}: {float(weights.sum()):.4f}", flush=True)


if __name__ == "__main__":
    main()
