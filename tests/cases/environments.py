"""Which interpreter runs a program."""
import glob
import os
import re
import shutil

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MILLPOND = os.environ.get("MILLPOND") or os.path.join(ROOT, "build", "bin", "millpond")
PEERS = os.path.join(os.environ.get("MILLPOND_PEERS", os.path.join(ROOT, ".venv-peers")), "bin", "python")
SYSTEM = os.environ.get("SYSTEM_PYTHON", "/usr/bin/python3")
THREADS = os.environ.get("THREADS_PYTHON", os.path.join(ROOT, ".venv-threads", "bin", "python"))


def interpreter(name):
    """The path of `peers`, `system`, `threads` or a version such as 3.12; None where it is not installed."""
    named = {"peers": PEERS, "system": SYSTEM, "threads": THREADS}.get(name)
    if named:
        return named if os.access(named, os.X_OK) else None
    # pyenv's own files and not its shims: those are shell scripts that start several other programs first.
    versions = os.path.join(os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv")), "versions")
    found = [path for path in glob.glob(os.path.join(versions, name + ".*", "bin", "python" + name)) if re.fullmatch(r"[\d.]+", path.split(os.sep)[-3])]
    if found:
        return max(found, key=lambda path: int(path.split(os.sep)[-3].rsplit(".", 1)[1]))
    return shutil.which("python" + name)


def variables():
    """The environment of a judged program: no GPU, few words, no threads that wait for each other on a busy machine."""
    return dict(os.environ, PYTHONUNBUFFERED="1", CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="2", PYTHONDONTWRITEBYTECODE="1", MPLBACKEND="Agg", JAX_PLATFORMS="cpu",
                OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
