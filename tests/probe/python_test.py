"""The probe in Python programs, under every interpreter from 3.9 on that is here, with the GIL or without (3.13t): the right file, line
and function for each known block, small objects counted without bias, the same output as without it. MILLPOND_PYTHONS: more interpreters, by their paths."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "support"))
from pythons import pythons  # noqa: E402
from probe_file import FRAMES_NOT_KNOWN, FRAMES_SEEN, FREE_THREADED, PYTHON, ProbeFile  # noqa: E402

LIBRARY = os.path.join(os.environ.get("MILLPOND_BUILD_DIR", "build"), "lib/millpond/libmillpond_probe.so")
OTHER_PYTHON = os.path.join(os.environ.get("MILLPOND_BUILD_DIR", "build"), "tests/libother_python.so")
PATIENT = os.path.join(HERE, "python_patient.py")
MIB = 1 << 20
LINES = {m.group(1): n for n, line in enumerate(open(PATIENT), 1) if (m := re.search(r"# (\w+)$", line))}


INTERPRETERS = list(pythons(free_threaded=True).items())


class Run:
    """One scenario, waiting at its end: `file` is its probe file as it is then."""

    def __init__(self, python, scenario, watched=True, **settings):
        self.folder = tempfile.mkdtemp(prefix="millpond-test-", dir="/dev/shm")
        try:
            environment = {k: v for k, v in os.environ.items() if not k.startswith(("LD_", "MILLPOND", "PYTHON"))}
            environment.update(PYTHONHASHSEED="0", PYTHONDONTWRITEBYTECODE="1", PYTHONIOENCODING="utf-8")
            if watched:
                before = settings.pop("before", None)
                environment.update(LD_PRELOAD=":".join(filter(None, [before, os.path.abspath(LIBRARY)])), MILLPOND_WATCH=self.folder, MILLPOND_SEED="11")
                environment.setdefault("MILLPOND_INTERVAL", "65536")
            environment.update(settings)
            command = [python, PATIENT, scenario] + ([] if watched else ["--plain"])
            if "--plain" in settings:
                command.append("--plain")
                del environment["--plain"]
            pipe = subprocess.PIPE
            child = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe)
            self.lines = [child.stdout.readline().decode()]
            self.file = None
            path = os.path.join(self.folder, f"{child.pid}.probe")
            if watched and os.path.exists(path):
                self.file = ProbeFile(path)
            out, err = child.communicate(timeout=60)
            self.output, self.errors, self.status = self.lines[0] + out.decode(), err.decode(), child.returncode
            self.said = json.loads(self.lines[0]) if self.lines[0].startswith("{") else None
            self.files = len(os.listdir(self.folder))
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


def under_each(test):
    def run(self):
        for version, path in INTERPRETERS:
            with self.subTest(python=version, path=path):
                test(self, version, path)

    return run


class PythonTest(unittest.TestCase):
    maxDiff = None

    def block(self, file, size, slack=64):
        """The one block of that size: its Python frames, innermost first, as (function, line)."""
        found = [entry for entry in file.live() if size <= entry.size < size + slack]
        self.assertEqual(len(found), 1, f"blocks of {size} bytes")
        return found[0]

    def made_at(self, file, name):
        """Objects of Python whose innermost frame is at the line of that name."""
        return [e for e in file.live() if e.kind == PYTHON and e.python() and e.python()[0][2] == LINES[name]]

    def places(self, entry):
        return [(name.rpartition(".")[2], line) for name, file, line in entry.python() if file == PATIENT]

    @under_each
    def test_every_block_is_found_at_its_line(self, version, path):
        run = Run(path, "where")
        self.assertEqual(run.status, 0, run.errors)
        file = run.file
        self.assertEqual(file.header["python"], 300 + int(version[2:].rstrip("t")))
        self.assertEqual(file.python_frames, FRAMES_SEEN | (FREE_THREADED if version.endswith("t") else 0))
        nested = [("inner", LINES["inner"]), ("middle", LINES["middle"]), ("outer", LINES["outer"])]
        self.assertEqual(self.places(self.block(file, 3 * MIB))[:3], nested)
        self.assertEqual(self.places(self.block(file, 5 * MIB))[:3], nested)
        self.assertIn("<lambda>", self.places(self.block(file, 5 * MIB))[3])
        generated = [entry for entry in file.live() if 4 * MIB <= entry.size < 4 * MIB + 64]
        self.assertEqual([self.places(e)[0] for e in generated], [("generator", LINES["generator"])] * 3)
        self.assertEqual({self.places(e)[1][0] for e in generated}, {"where"})
        comprehension = [line for _, line in self.places(self.block(file, 6 * MIB))]
        self.assertEqual(comprehension[0], LINES["comprehension"])
        method = self.block(file, 7 * MIB)
        qualified = "Keeper.method" if version not in ("3.9", "3.10") else "method"
        self.assertEqual(method.python()[0][0], qualified)
        self.assertEqual(self.places(method)[0], ("method", LINES["method"]))
        self.assertEqual(self.places(self.block(file, 8 * MIB))[:1], [("coroutine", LINES["coroutine"])])
        deep = self.block(file, 9 * MIB)
        self.assertEqual(self.places(deep)[0], ("recurse", LINES["recurse"]))
        self.assertEqual(len(deep.frames()), 96)
        self.assertTrue(file.stack_flags(deep.stack) & 1)
        self.assertEqual(self.places(self.block(file, 10 * MIB))[0], ("failing", LINES["failing"]))
        foreign = self.block(file, 11 * MIB).python()[0]
        self.assertEqual(foreign, ("größe", "/tmp/módulo_日本_😀.py", 1002))
        for kind in ("lost_live", "lost_stacks", "lost_codes", "lost_records"):
            self.assertEqual(file.header[kind], 0)

    @under_each
    def test_small_objects_are_counted_without_bias(self, version, path):
        run = Run(path, "small")
        size = run.said["bytes"] / run.said["blocks"]
        entries = [e for e in self.made_at(run.file, "tuples") if abs(e.size - size) <= 8]
        sigma = (65536 / run.said["bytes"]) ** 0.5
        self.assertLess(abs(sum(e.bytes for e in entries) / run.said["bytes"] - 1), 3.5 * sigma)
        self.assertLess(abs(sum(e.blocks for e in entries) / run.said["blocks"] - 1), 3.5 * sigma)

    @under_each
    def test_objects_weigh_what_their_allocator_takes_for_them(self, version, path):
        run = Run(path, "floats")
        entries = [e for e in self.made_at(run.file, "floats") if e.size == 24]
        sigma = (65536 / (24 * run.said["blocks"])) ** 0.5
        self.assertLess(abs(sum(e.bytes for e in entries) / run.said["bytes"] - 1), 3.5 * sigma)
        self.assertLess(abs(sum(e.blocks for e in entries) / run.said["blocks"] - 1), 3.5 * sigma)

    def test_what_is_allocated_slowly_after_a_rush_is_sampled_finely_again(self):
        run = Run(sys.executable, "calms", MILLPOND_INTERVAL="0")  # T is steered
        kept = [e for e in run.file.live() if e.python() and e.python()[0][2] == LINES["calm"]]
        self.assertGreater(len(kept), 30, "of 80")
        self.assertLess(abs(sum(e.bytes for e in kept) / (80 * 60000) - 1), 0.6)

    @under_each
    def test_nothing_is_left_of_objects_that_were_freed(self, version, path):
        run = Run(path, "freed")
        self.assertEqual(self.made_at(run.file, "tuples"), [])

    @under_each
    def test_sampled_objects_grow_shrink_and_are_inherited(self, version, path):
        for interval in ("1024", "65536"):  # nearly every second object, and as usual
            run = Run(path, "lives", MILLPOND_INTERVAL=interval)
            self.assertEqual(run.status, 0, run.errors)
            self.assertEqual((run.said["right"], run.said["children"]), (True, [0, 0, 0]))
            self.assertLess(abs(run.said["blocks"]), 200)

    @under_each
    def test_python_s_other_allocators(self, version, path):
        for name in ("debug", "mimalloc_debug") if version.endswith("t") else ("malloc", "debug", "pymalloc_debug"):
            run = Run(path, "lives", MILLPOND_INTERVAL="4096", PYTHONMALLOC=name)
            self.assertEqual((run.status, run.said["right"], run.said["children"]), (0, True, [0, 0, 0]), run.errors)
            run = Run(path, "freed", PYTHONMALLOC=name)
            self.assertEqual(self.made_at(run.file, "tuples"), [])

    @under_each
    def test_threads_of_all_kinds_of_frames_under_snapshots(self, version, path):
        run = Run(path, "stress", MILLPOND_INTERVAL="4096")
        self.assertEqual((run.status, run.said["worked"]), (0, 8), run.errors)
        self.assertGreater(run.file.header["samples"], 1000)
        names = {frame[1] for entry in run.file.live() for frame in entry.python()}
        self.assertTrue(all(name.startswith(("/", "<")) for name in names), names)

    @under_each
    def test_output_is_the_same_and_children_are_watched(self, version, path):
        plain = Run(path, "family", watched=False)
        watched = Run(path, "family", **{"--plain": "1"})
        self.assertEqual((plain.output, plain.errors, plain.status), (watched.output, watched.errors, watched.status))
        self.assertGreaterEqual(watched.files, 3)  # a worker of the pool may be ended before it began

    def unknown_versions(self):
        """Interpreters that publish where things lie, under a version that does not exist yet; only one in a libpython lets itself be renamed."""
        if not os.path.exists(OTHER_PYTHON):
            self.skipTest("no " + OTHER_PYTHON)
        question = "import ctypes; print(ctypes.CFUNCTYPE(ctypes.c_char_p)(('Py_GetVersion', ctypes.CDLL(None)))()[:4].decode())"
        environment = dict(os.environ, LD_PRELOAD=os.path.abspath(OTHER_PYTHON))
        found = [path for version, path in INTERPRETERS if version not in ("3.9", "3.10", "3.11", "3.12")
                 and subprocess.run([path, "-c", question], env=environment, stdout=subprocess.PIPE).stdout == b"3.99\n"]
        if not found:
            self.skipTest("no Python from 3.13 on whose functions lie in a libpython")
        return found

    def test_a_version_that_is_not_known_is_read_by_the_table_that_passes_the_check(self):
        for path in self.unknown_versions():
            run = Run(path, "where", before=os.path.abspath(OTHER_PYTHON))
            self.assertEqual((run.status, run.file.header["python"], run.file.python_frames & ~FREE_THREADED), (0, 399, FRAMES_SEEN), run.errors)
            self.assertEqual(self.places(self.block(run.file, 3 * MIB))[:2], [("inner", LINES["inner"]), ("middle", LINES["middle"])])

    def test_a_version_that_fails_the_check_is_refused_and_runs_on(self):
        for path in self.unknown_versions():
            run = Run(path, "where", before=os.path.abspath(OTHER_PYTHON), OTHER_PYTHON_LINES="1")
            self.assertEqual((run.status, run.file.header["python"], run.file.python_frames & ~FREE_THREADED), (0, 399, FRAMES_NOT_KNOWN), run.errors)
            self.assertEqual([entry.python() for entry in run.file.live() if entry.python()], [])
            self.assertTrue(self.block(run.file, 3 * MIB).frames())

    def test_arrays_of_numpy(self):
        peers = os.path.join(os.environ.get("MILLPOND_SOURCE_DIR", "."), ".venv-peers/bin/python")
        if not os.path.exists(peers):
            self.skipTest("no .venv-peers: make peers")
        run = Run(peers, "array")
        self.assertIn(("array", LINES["array"]), self.places(self.block(run.file, 3 * MIB)))

    def test_only_hooks_and_the_probe_are_exported(self):
        if not shutil.which("nm"):
            self.skipTest("no nm")
        text = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], stdout=subprocess.PIPE).stdout.decode()
        names = {line.split()[-1].partition("@")[0] for line in text.splitlines()}
        hooks = {"malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc", "memalign", "valloc"}
        hooks |= {"pvalloc", "free_sized", "free_aligned_sized", "malloc_usable_size", "mmap", "mmap64", "munmap", "mremap"}
        hooks |= {"execv", "execve", "execvp", "execvpe", "posix_spawn", "posix_spawnp"}
        self.assertEqual({name for name in names if not name.startswith("millpond_probe_")}, hooks)


if __name__ == "__main__":
    if not INTERPRETERS:
        print("no interpreter from 3.9 to 3.15 is here")
        sys.exit(77)
    print("with", ", ".join(f"{version} ({path})" for version, path in INTERPRETERS))
    unittest.main(verbosity=2)
