"""What the tests of python/millpond share: the program, the interpreters that are here, a clean environment."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
from pythons import pythons  # noqa: E402

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PYTHON = os.path.join(SOURCE, "python")
BUILD = os.path.abspath(os.environ.get("MILLPOND_BUILD_DIR", os.path.join(SOURCE, "build")))
MILLPOND = os.path.join(BUILD, "bin", "millpond")


def environment(**more):
    """Of the test, without what would change the program under it."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("LD_", "MILLPOND", "PYTHON"))}
    clean.update(MILLPOND=MILLPOND, PYTHONPATH=PYTHON, PYTHONDONTWRITEBYTECODE="1", PYTHONIOENCODING="utf-8")
    clean.update(more)
    return clean


INTERPRETERS = list(pythons(free_threaded=True).items())
