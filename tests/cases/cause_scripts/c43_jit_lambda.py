import jax
import jax.numpy as jnp
import numpy as np

EPOCHS = 14
STEPS = 4


def main():
    rng = np.random.default_rng(3)
    w = jnp.zeros((64, 1))
    for epoch in range(EPOCHS):
        for _ in range(STEPS):
            x = jnp.asarray(rng.random((2000, 64), dtype=np.float32))
            y = x.sum(axis=1, keepdims=True)
            step = jax.jit(lambda w: w - 0.001 * jax.grad(lambda v: jnp.mean((x @ v - y) ** 2))(w))
            w = step(w)
        print(f"epoch {epoch}: loss {float(jnp.mean((x @ w - y) ** 2)):.4f}", flush=True)


if __name__ == "__main__":
    main()
