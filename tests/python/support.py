"""What the tests of python/millpond share: the program, the interpreters that are here, a clean environment."""
import glob
import os
import subprocess

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


def _interpreters():
    found = {}
    for path in sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"))) + ["/usr/bin/python3.%d" % minor for minor in range(9, 20)] + ["/usr/bin/python3"]:
        if not os.path.exists(path):
            continue
        ask = subprocess.run([path, "-c", "import sys; print('%d.%d' % sys.version_info[:2], sys.version_info >= (3, 9))"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        version, _, good = ask.stdout.strip().partition(" ")
        if ask.returncode == 0 and good == "True":
            found[(tuple(map(int, version.split("."))), os.path.realpath(path))] = path
    return [(".".join(map(str, version)), path) for (version, _), path in sorted(found.items())]


INTERPRETERS = _interpreters()
