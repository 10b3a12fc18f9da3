"""The Pythons of this machine, one of each version: pyenv's own files (its shims are shell scripts that start other programs first), those on the path and of the system, and what
MILLPOND_PYTHONS names."""
import glob
import os
import re
import subprocess
import sys

_QUESTION = "import sys; print('%d.%d' % sys.version_info[:2] + ('t' if 't' in getattr(sys, 'abiflags', '') else ''), sys.version_info >= (3, 9) and sys.implementation.name == 'cpython')"


def pythons(free_threaded=False):
    """{"3.11": path}, the oldest first. free_threaded: builds without the GIL too, as "3.13t"."""
    folders = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if folder and "/shims" not in folder] + ["/usr/bin"]
    paths = sorted(glob.glob(os.path.join(os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv")), "versions/3.*/bin/python3")))
    paths += [path for folder in folders for path in sorted(glob.glob(os.path.join(folder, "python3.[0-9]*")))] + ["/usr/bin/python3"]
    paths += [path for path in os.environ.get("MILLPOND_PYTHONS", "").split(os.pathsep) if path] + [os.path.realpath(sys.executable)]
    found, asked = {}, set()
    for path in paths:
        real = os.path.realpath(path)
        if real in asked or not os.access(path, os.X_OK) or not re.fullmatch(r"python3(\.\d+t?)?", os.path.basename(path)):
            continue
        asked.add(real)
        answer = subprocess.run([path, "-c", _QUESTION], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        version, _, known = answer.stdout.strip().partition(" ")
        if answer.returncode == 0 and known == "True" and (free_threaded or not version.endswith("t")):
            found.setdefault(version, path)
    runner = sys.modules.get("run_test")
    if free_threaded and runner and not any(version.endswith("t") for version in found):
        runner.note("Python without the GIL", "none is here")
    return dict(sorted(found.items(), key=lambda item: (int(item[0].strip("t").split(".")[1]), item[0])))
