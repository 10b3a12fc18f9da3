"""Programs whose memory is known by construction, drawn from a seed: see ../README.md."""
from .program import Program, make  # noqa: F401
