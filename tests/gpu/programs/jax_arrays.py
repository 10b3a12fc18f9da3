"""Arrays of JAX in a list."""
import jax
import jax.numpy as jnp
from common import Rounds


@jax.jit
def update(weights, x):
    return jnp.tanh(x @ weights)


def main():
    weights = jax.random.normal(jax.random.PRNGKey(0), (1024, 1024))
    history = []
    for index in Rounds(45):
        for step in range(4):
            x = jax.random.normal(jax.random.PRNGKey(index * 4 + step), (1024, 1024))
            activations = update(weights, x)
            history.append(activations)


main()
