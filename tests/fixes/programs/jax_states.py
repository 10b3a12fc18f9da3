import jax
import jax.numpy as jnp

key = jax.random.PRNGKey(0)
states = []
state = jnp.zeros((400, 200))
for epoch in range(30):
    for _ in range(5):
        key, part = jax.random.split(key)
        state = jnp.tanh(state * 0.9 + jax.random.normal(part, (400, 200)))
        states.append(state)
    print(f"epoch {epoch}: mean {float(states[-1].mean()):.4f}", flush=True)
