"""Programs of torch, Keras, TensorFlow and JAX."""


def draw(rng):
    """A maker of such programs, or None for the plain and NumPy ones."""
    return None
