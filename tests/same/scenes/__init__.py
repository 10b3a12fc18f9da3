"""All scenes, in an order that stays: the same seed gives the same program."""
from .scene import SCENES  # noqa: F401
from . import processes, interpreter, surroundings  # noqa: F401,E402 (each adds its own)
