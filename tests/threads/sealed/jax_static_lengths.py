"""Static arguments that are always new make JAX compile and keep a function for each value.
mlaux1/rl-blox#157
Trains on episodes of different length; the length is a static argument of the jitted update."""
from functools import partial

import jax
import jax.numpy as jnp


def loss(weights, states):
    hidden = jnp.tanh(states @ weights["a"])
    for _ in range(2):
        hidden = jnp.tanh(hidden @ weights["b"])
    return jnp.square(hidden).mean()


@partial(jax.jit, static_argnames=("length",))
def update(weights, states, length):
    used = jax.lax.slice(states, (0, 0), (length, states.shape[1]))
    gradients = jax.grad(loss)(weights, used)
    return jax.tree_util.tree_map(lambda w, g: w - 0.01 * g, weights, gradients)


def main():
    keys = jax.random.split(jax.random.PRNGKey(0), 3)
    weights = {"a": jax.random.normal(keys[0], (16, 32)), "b": jax.random.normal(keys[1], (32, 32)) * 0.1}
    states = jax.random.normal(keys[2], (400, 16))
    for episode in range(40):
        weights = update(weights, states, length=100 + episode * 3)
        print(f"episode {episode}: {float(jnp.abs(weights['b']).sum()):.5f}", flush=True)


if __name__ == "__main__":
    main()
