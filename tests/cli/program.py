"""Calls the program under test and reads what it says."""
import json
import os
import shutil
import struct
import subprocess
import tempfile
import textwrap
import unittest

BUILD = os.environ.get("MILLPOND_BUILD_DIR", "build")
PROGRAM = os.environ.get("MILLPOND", os.path.join(BUILD, "bin", "millpond"))


def built_with(option):
    """The value of a CMake option of this build."""
    try:
        with open(os.path.join(BUILD, "CMakeCache.txt")) as cache:
            for line in cache:
                if line.startswith(option + ":"):
                    return line.strip().split("=", 1)[1]
    except OSError:
        pass
    return ""


SANITIZED = bool(built_with("MILLPOND_SANITIZE"))
CHECKS = built_with("MILLPOND_CHECKS") == "ON"


class InFolder(unittest.TestCase):
    """Every test in a folder of its own."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="millpond-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(textwrap.dedent(text))
        return self.path(name)


def millpond(*arguments, code=0, **environment):
    """Runs it and returns (stdout, stderr)."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ, **environment))
    if done.returncode != code:
        raise AssertionError(f"millpond {' '.join(map(str, arguments))} ended with {done.returncode}, not {code}\n{done.stdout}\n{done.stderr}")
    return done.stdout, done.stderr


def millpond_json(*arguments, code=0, **environment):
    return json.loads(millpond(*arguments, "--json", "-", code=code, **environment)[0])


def write_npy(path, values, shape, kind="f"):
    """kind: f float32, i int32."""
    header = "{'descr': '<%s4', 'fortran_order': False, 'shape': (%s), }" % (kind, "".join(f"{n}, " for n in shape))
    header += " " * ((64 - (10 + len(header) + 1) % 64) % 64) + "\n"
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin1"))
        out.write(struct.pack(f"<{len(values)}{kind}", *values))


def read_npy(path):
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<H", data[8:10])[0]
    header = eval(data[10:10 + size].decode("latin1"), {})  # our own file
    count = 1
    for n in header["shape"]:
        count *= n
    return header["shape"], struct.unpack(f"<{count}f", data[10 + size:])


def keras_json(*layers):
    """What model.to_json() of a Sequential gives, without what nobody reads."""
    return json.dumps({"module": "keras", "class_name": "Sequential", "config": {"name": "sequential", "layers": list(layers)}, "registered_name": None})


def layer(kind, **config):
    return {"module": "keras.layers", "class_name": kind, "config": config, "registered_name": None}
