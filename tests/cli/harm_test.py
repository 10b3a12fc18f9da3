"""A watched program is as without us: it lives, says, leaves and ends the same, whatever it does to its process and however little there is left on the machine."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

from program import BUILD, PROGRAM, SANITIZED

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
from pythons import pythons  # noqa: E402

MILLPOND = os.path.abspath(PROGRAM)
PYTHON = sys.executable
GCC = shutil.which("gcc")
ROOT = os.geteuid() == 0


def proc(pid, name):
    with open("/proc/%d/%s" % (pid, name)) as file:
        return file.read()


def children_of(pid):
    return [int(word) for word in proc(pid, "task/%d/children" % pid).split()]


def can_mount():
    return ROOT and subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode == 0 if shutil.which("unshare") else False


# Rounds with snapshots and looks, and a child in each: what it ended with is counted.
FORKS = """\
import os, sys, time
kept, failed = [], 0
for epoch in range(%d):
    kept.append([bytes(40000) for _ in range(20)])
    print("epoch", epoch, flush=True)
    time.sleep(0.05)
    pid = os.fork()
    if pid == 0:
        more = [bytes(40000) for _ in range(20)]
        os._exit(0)
    failed += os.waitpid(pid, 0)[1] != 0
print("failed", failed)
"""


class Harm(unittest.TestCase):
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

    def run_bare(self, *command, **options):
        return subprocess.run([str(word) for word in command], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, **options)

    def watch(self, *command, options=(), before=(), **more):
        """Runs it under watch and returns (what it did, the JSON that was found)."""
        result = self.path("result.json")
        if os.path.exists(result):
            os.unlink(result)
        done = self.run_bare(*before, MILLPOND, "watch", "--quiet", "--json", result, *options, "--", *command, **more)
        found = None
        if os.path.exists(result):
            with open(result) as file:
                found = json.load(file)
        return done, found

    # Children -------------------------------------------------------------------------------------------------------

    def test_forked_children_live_when_they_are_not_followed(self):
        self.write("program.py", FORKS % 12)
        done, _ = self.watch(PYTHON, "program.py", options=["--no-follow-fork"])
        self.assertIn("failed 0\n", done.stdout)

    def test_forked_children_live_after_the_watcher_has_gone(self):
        self.write("program.py", FORKS % 40)
        with open(self.path("out.txt"), "w") as out:
            done = subprocess.run([MILLPOND, "watch", "--quiet", "--for", "1", "--", PYTHON, "program.py"], cwd=self.folder, stdout=out, stderr=subprocess.PIPE, timeout=60)
        self.wait_for(lambda: "failed" in self.read("out.txt"))
        self.assertIn("failed 0\n", self.read("out.txt"), done.stderr)

    def test_forked_children_live_in_a_background_program_whose_launcher_has_ended(self):
        self.write("program.py", FORKS % 40)
        self.write("launch.sh", "%s program.py > out.txt 2> err.txt &\nsleep 1\n" % PYTHON)
        self.watch("sh", "launch.sh")
        self.wait_for(lambda: "failed" in self.read("out.txt"))
        self.assertIn("failed 0\n", self.read("out.txt"))
        self.assertEqual(self.read("err.txt"), "")

    def test_forked_children_live_without_a_descriptor_left(self):
        text = (FORKS % 12).replace("kept, failed", """import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
held = []
try:
    while True: held.append(os.open("/dev/null", os.O_RDONLY))
except OSError: pass
kept, failed""")
        self.write("program.py", text)
        done, _ = self.watch(PYTHON, "program.py")
        self.assertIn("failed 0\n", done.stdout, done.stderr)

    @unittest.skipUnless(can_mount(), "needs to mount")
    def test_forked_children_live_and_the_report_says_so_when_shared_memory_is_full(self):
        self.write("program.py", FORKS % 12)
        fill = "mount -t tmpfs -o size=8m tmpfs /dev/shm && head -c %d /dev/zero > /dev/shm/full; exec \"$@\""
        for left, seen in ((0, False), (300000, False), (4000000, True)):
            done, found = self.watch(PYTHON, "program.py", before=["unshare", "-m", "sh", "-c", fill % ((8 << 20) - left), "sh"])
            self.assertIn("failed 0\n", done.stdout, done.stderr)
            if not seen:
                self.assertIn("found no room in shared memory", found["not_seen"])
                self.assertNotIn("does not grow", found["sentence"])

    def read(self, name):
        try:
            with open(self.path(name)) as file:
                return file.read()
        except OSError:
            return ""

    def wait_for(self, condition, seconds=120):
        end = time.monotonic() + seconds
        while not condition() and time.monotonic() < end:
            time.sleep(0.05)
        self.assertTrue(condition())

    # Trace functions ------------------------------------------------------------------------------------------------

    TRACED = """\
        import time
        def train():
            seen, count = [], 0
            for epoch in range(14):
                value = bytes(30000)
                seen.append(value)
                count += 1
                print("epoch %d" % epoch)
                time.sleep(0.05)
                last = count
            return last, len(seen)
        print(train())
        """

    def test_locals_stay_under_a_trace_function_in_every_python(self):
        self.write("program.py", self.TRACED)
        for python in pythons().values():
            command = [python, "-m", "trace", "--trace", "program.py"]
            bare = self.run_bare(*command)
            done, _ = self.watch(*command)
            self.assertEqual((done.stdout, done.returncode), (bare.stdout, bare.returncode), python)

    def test_a_tracer_sees_the_program_alone(self):
        self.write("program.py", """\
            import sys, time
            seen = []
            def tracer(frame, event, arg):
                seen.append((frame.f_code.co_filename, frame.f_code.co_name, event, sorted(frame.f_locals)))
                return tracer
            def train():
                kept = []
                for epoch in range(14):
                    kept.append(bytes(50000))
                    print("epoch", epoch)
                    time.sleep(0.05)
                return len(kept)
            sys.settrace(tracer)
            count = train()
            sys.settrace(None)
            print(count, len(seen), {entry[0] for entry in seen} == {__file__})
            """)
        for python in pythons().values():
            bare = self.run_bare(python, "program.py")
            done, _ = self.watch(python, "program.py")
            self.assertEqual(done.stdout, bare.stdout, python)

    def test_a_tracer_that_is_a_method_and_prints_keeps_its_self_and_the_locals_of_what_it_traces(self):
        # As that of coverage in Python: a look at a line that the tracer prints comes while the traced function's locals are copied out.
        self.write("program.py", """\
            import sys, time
            class Tracer:
                def __init__(self):
                    self.lines = 0
                def trace(self, frame, event, arg):
                    if event == "line":
                        self.lines += 1
                        print("epoch %d: line %d" % (self.lines, frame.f_lineno))
                        time.sleep(0.01)
                    return self.trace
            def train(kept, last=None):
                for epoch in range(14):
                    value = bytes(50000)
                    kept.append(value)
                    last = epoch
                return last, len(value), len(kept)
            tracer = Tracer()
            sys.settrace(tracer.trace)
            found = train([])
            sys.settrace(None)
            print(found, tracer.lines)
            """)
        for python in pythons().values():
            bare = self.run_bare(python, "program.py")
            self.assertEqual(bare.returncode, 0, bare.stderr)
            done, _ = self.watch(python, "program.py")
            self.assertEqual((done.stdout, done.returncode), (bare.stdout, bare.returncode), (python, done.stderr))

    def test_a_debugger_stops_shows_and_changes_what_it_does_without_us(self):
        self.write("program.py", self.TRACED)
        commands = "break 8\ncontinue\np epoch, count, len(seen)\n!count = 100\ncontinue\np count, sorted(locals())\nup\np sorted(k for k in locals() if k[0] != '_')\ndown\n" \
                   "clear 1\nnext\nnext\nargs\nwhere\ncontinue\nquit\n"
        for python in pythons().values():
            bare = self.run_bare(python, "-m", "pdb", "program.py", input=commands)
            self.assertIn("101", bare.stdout)
            done, _ = self.watch(python, "-m", "pdb", "program.py", input=commands)
            self.assertEqual((done.stdout, done.returncode), (bare.stdout, bare.returncode), (python, done.stderr))

    # Before it starts -----------------------------------------------------------------------------------------------

    def test_a_run_file_that_is_refused_starts_nothing(self):
        self.write("program.py", "open('ran', 'w')\n")
        self.write("there.pond", "")
        done = self.run_bare(MILLPOND, "watch", "-o", "there.pond", "--", PYTHON, "program.py")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("there.pond", done.stderr)
        done = self.run_bare(MILLPOND, "watch", "-o", "no/such/folder/x.pond", "--", PYTHON, "program.py")
        self.assertEqual(done.returncode, 2, done.stderr)
        time.sleep(0.3)
        self.assertFalse(os.path.exists(self.path("ran")))

    def test_a_program_that_cannot_be_started_leaves_no_run_file(self):
        self.write("program", "no first line\n")
        os.chmod(self.path("program"), 0o755)
        done = self.run_bare(MILLPOND, "watch", "-o", "x.pond", "--", "./program")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder)), ["program"])

    @unittest.skipUnless(can_mount(), "needs to mount")
    def test_a_full_disk_ends_the_recording_and_not_the_program(self):
        self.write("program.py", """\
            import sys, time
            kept = []
            def deep(n, epoch):
                return deep(n - 1, epoch) if n else [bytes(70000) for _ in range(5)]
            for epoch in range(60):
                for depth in range(40):
                    kept.append(deep(depth, epoch))
                print("epoch", epoch)
                time.sleep(0.02)
                if epoch == 5:
                    with open("small/filler", "wb", buffering=0) as file:
                        try:
                            while True: file.write(bytes(1000))
                        except OSError: pass
            sys.exit(7)
            """)
        os.mkdir(self.path("small"))
        mount = "mount -t tmpfs -o size=4m tmpfs small && exec \"$@\""
        done = self.run_bare("unshare", "-m", "sh", "-c", mount, "sh", MILLPOND, "watch", "--quiet", "-o", "small/x.pond", "--", PYTHON, "program.py")
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertEqual(done.stdout.count("epoch"), 60)
        self.assertIn("small/x.pond", done.stderr)
        self.assertIn("could not be written", done.stderr)

    # Shared memory --------------------------------------------------------------------------------------------------

    def most_held(self, process, place="/dev/shm"):
        """The most that the watcher's folder held while it ran, the most processes in it at once, and what it held when the program was last seen alone."""
        most, files, last = 0, 0, 0
        while process.poll() is None:
            held = count = 0
            try:
                for name in os.listdir(place):
                    if name.startswith("millpond-%d-" % process.pid):
                        for entry in os.scandir(os.path.join(place, name)):
                            held += entry.stat().st_blocks * 512
                            count += entry.name.endswith(".probe")
            except OSError:
                pass  # a file, or the program, that has just gone
            most, files = max(most, held), max(files, count)
            last = held if count == 1 else last
            time.sleep(0.01)
        return most, files, last

    @unittest.skipUnless(os.access("/dev/shm", os.W_OK), "no shared memory")
    def test_what_ended_children_left_in_shared_memory_goes_at_once(self):
        self.write("program.py", """\
            import subprocess, sys
            for n in range(24):
                subprocess.run([sys.executable, "-c", "x = [bytes(30000) for _ in range(800)]"])
            print("done")
            """)
        process = subprocess.Popen([MILLPOND, "watch", "--quiet", "--", PYTHON, "program.py"], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        most, files, _ = self.most_held(process)
        self.assertGreater(files, 0)
        self.assertLess(files, 12)
        self.assertLess(most, 8 << 20)

    # Thousands of places that allocate: alone it would take several MiB of shared memory.
    PLACES = """\
        import sys
        names = {}
        exec("".join(f"def place_{i}(n):\\n    return bytearray(n)\\n" for i in range(6000)), names)
        kept = [names[f"place_{i}"](70000) for i in range(6000)]
        print("up", flush=True)
        sys.stdin.read()
        """
    ELEVEN = """\
        import subprocess, sys, time
        children = [subprocess.Popen([sys.executable, "child.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(11)]
        for child in children: child.stdout.readline()
        time.sleep(1)
        for child in children: child.communicate()
        time.sleep(2)
        print(sum(child.returncode for child in children))
        """

    @unittest.skipUnless(os.access("/dev/shm", os.W_OK), "no shared memory")
    def test_many_processes_at_once_take_8_mib_for_eight_and_512_kib_for_each_more_and_give_it_back(self):
        self.write("child.py", self.PLACES)
        self.write("program.py", self.ELEVEN)
        # As many samples as on a quiet machine, whatever they cost here: otherwise they are taken less often, and want less room.
        process = subprocess.Popen([MILLPOND, "watch", "--quiet", "--", PYTHON, "program.py"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                   env=dict(os.environ, MILLPOND_INTERVAL="65536"))
        most, files, last = self.most_held(process)
        self.assertEqual(process.stdout.read(), "0\n")
        process.stdout.close()
        self.assertEqual(files, 12)
        self.assertLessEqual(most, (8 << 20) + 4 * (512 << 10))
        self.assertGreater(most, 6 << 20, "they wanted more than they were promised")
        self.assertLess(last, 2 << 20, "only the parent is left")

    @unittest.skipUnless(can_mount(), "needs to mount")
    def test_never_more_than_a_quarter_of_what_is_free_is_taken_and_the_report_says_who_was_not_seen(self):
        self.write("child.py", self.PLACES)
        self.write("program.py", self.ELEVEN)
        mount = "mount -t tmpfs -o size=8m tmpfs /dev/shm && exec \"$@\""
        command = ["unshare", "-m", "sh", "-c", mount, "sh", MILLPOND, "watch", "--quiet", "--json", "result.json", "--", PYTHON, "program.py"]
        process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        most, files, _ = self.most_held(process, "/proc/%d/root/dev/shm" % process.pid)
        self.assertEqual(process.stdout.read(), "0\n")
        process.stdout.close()
        self.assertGreater(files, 0)
        self.assertLessEqual(most, 2 << 20)
        with open(self.path("result.json")) as file:
            self.assertRegex(json.load(file)["not_seen"], r"\d+ of its processes found no room in shared memory")

    @unittest.skipUnless(os.access("/dev/shm", os.W_OK), "no shared memory")
    def test_what_a_killed_watcher_left_goes_at_the_next_start_and_what_a_living_one_has_stays(self):
        self.write("program.py", "import time\nprint('up', flush=True)\ntime.sleep(60)\n")
        watchers = [subprocess.Popen([MILLPOND, "watch", "--quiet", "--", PYTHON, "program.py"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                    for _ in range(2)]
        programs = []
        try:
            for watcher in watchers:
                watcher.stdout.readline()
                programs += children_of(watcher.pid)
            folders = [[name for name in os.listdir("/dev/shm") if name.startswith("millpond-%d-" % watcher.pid)] for watcher in watchers]
            self.assertEqual([len(names) for names in folders], [1, 1])
            watchers[0].kill()
            watchers[0].wait()
            self.assertTrue(os.path.exists(os.path.join("/dev/shm", folders[0][0])))
            self.watch("true")
            self.assertFalse(os.path.exists(os.path.join("/dev/shm", folders[0][0])))
            self.assertTrue(os.path.exists(os.path.join("/dev/shm", folders[1][0])))
        finally:
            for watcher in watchers:
                watcher.kill()
                watcher.wait()
                watcher.stdout.close()
            for pid in programs:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass

    # gc ---------------------------------------------------------------------------------------------------------------

    def test_gc_stays_off_where_the_program_turned_it_off(self):
        self.write("program.py", """\
            import gc, time, weakref
            gc.disable()
            class Node: pass
            references, kept = [], []
            for epoch in range(24):
                node = Node()
                node.itself = node
                references.append(weakref.ref(node))
                del node
                kept.append(bytes(2_000_000))
                print("epoch", epoch, flush=True)
                time.sleep(0.06)
            print("alive", sum(reference() is not None for reference in references))
            """)
        done, found = self.watch(PYTHON, "program.py")
        self.assertIn("alive 24\n", done.stdout)

    def test_circles_that_pile_up_are_told_without_collecting_them(self):
        self.write("program.py", """\
            import gc, time
            gc.disable()
            class Node: pass
            for epoch in range(40):
                node = Node()
                node.itself = node
                node.data = b"x" * 4_000_000
                time.sleep(0.06)
                print("epoch", epoch, flush=True)
            print(gc.collect() > 0)
            """)
        bare = self.run_bare(PYTHON, "program.py")
        done, found = self.watch(PYTHON, "program.py")
        self.assertEqual(done.stdout, bare.stdout)
        self.assertEqual((found["verdict"], found["findings"][0]["cause"]), ("leak", "C10"), found["sentence"])

    # What cannot be looked into -----------------------------------------------------------------------------------------

    GROWS_C = """\
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <unistd.h>
        int main(void) {
          for (int i = 0; i < 40; ++i) {
            char* block = malloc(2000000);
            if (!block) return 3;
            memset(block, i + 1, 2000000);
            printf("round %d %d\\n", i, block[i]);
            usleep(40000);
          }
          fflush(stdout);
          _exit(5);
        }
        """

    def compiled(self, name, *options):
        self.write("grows.c", self.GROWS_C)
        done = self.run_bare(GCC, *options, "grows.c", "-o", name)
        if done.returncode:
            self.skipTest("cannot build with " + " ".join(options))
        return self.path(name)

    @unittest.skipUnless(GCC, "no compiler")
    def test_a_program_under_a_sanitizer_runs_and_its_growth_is_unsure(self):
        for option in ("-fsanitize=address", "-fsanitize=thread"):
            program = self.compiled("sanitized", option)
            bare = self.run_bare(program)
            done, found = self.watch(program)
            self.assertEqual((done.returncode, done.stdout), (bare.returncode, bare.stdout), done.stderr)
            self.assertIn("sanitizer", found["not_seen"])
            self.assertEqual(found["verdict"], "unsure", found["sentence"])

    @unittest.skipUnless(GCC, "no compiler")
    def test_a_sanitized_child_runs_too(self):
        self.compiled("sanitized", "-fsanitize=address")
        self.write("program.py", """\
            import os, subprocess
            quiet = {"stdout": subprocess.DEVNULL}
            print(subprocess.run(["./sanitized"], **quiet).returncode, subprocess.run(["./sanitized"], env=dict(os.environ), **quiet).returncode,
                  os.system("./sanitized > /dev/null") >> 8)
            """)
        done, _ = self.watch(PYTHON, "program.py")
        self.assertEqual(done.stdout, "5 5 5\n", done.stderr)
        self.assertNotIn("Sanitizer", done.stderr)

    @unittest.skipUnless(GCC, "no compiler")
    def test_another_allocator_that_is_preloaded_stays_and_what_it_hides_is_said(self):
        self.write("other.c", """\
            #include <stddef.h>
            void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void*, size_t);
            void __libc_free(void*);
            static long calls;
            void* malloc(size_t n) { ++calls; return __libc_malloc(n); }
            void* calloc(size_t n, size_t m) { return __libc_calloc(n, m); }
            void* realloc(void* p, size_t n) { return __libc_realloc(p, n); }
            void free(void* p) { __libc_free(p); }
            void* _Znwm(size_t n) { return __libc_malloc(n); }
            long other_calls(void) { return calls; }
            """)
        if self.run_bare(GCC, "-shared", "-fPIC", "-O1", "-fno-builtin", "other.c", "-o", "libother.so").returncode:
            self.skipTest("cannot build")
        self.write("program.py", "import ctypes, os\nprint(ctypes.CDLL(None).other_calls() > 100, os.environ['LD_PRELOAD'])\n")
        environment = dict(os.environ, LD_PRELOAD=self.path("libother.so"))
        bare = self.run_bare(PYTHON, "program.py", env=environment)
        done, found = self.watch(PYTHON, "program.py", env=environment)
        self.assertEqual(done.stdout, bare.stdout, done.stderr)
        self.assertIn("another allocator", found["not_seen"])

    @unittest.skipUnless(GCC, "no compiler")
    def test_a_static_program_that_grows_is_unsure_and_never_flat(self):
        done, found = self.watch(self.compiled("static", "-static"))
        self.assertEqual(done.returncode, 5)
        self.assertEqual(found["verdict"], "unsure", found["sentence"])
        self.assertIn("linked statically", found["not_seen"])
        self.assertNotIn("does not grow", found["sentence"])

    # Signals and surroundings -------------------------------------------------------------------------------------------

    COUNTS = """\
        import signal, sys, time
        got = []
        signal.signal(signal.SIGTERM, lambda number, frame: got.append(number))
        print("ready", flush=True)
        end = time.monotonic() + 60
        while not got and time.monotonic() < end: time.sleep(0.02)
        time.sleep(0.5)  # a second one would come by now
        print("got", len(got), flush=True)
        """

    def test_a_signal_to_the_group_comes_once_and_one_to_the_watcher_too(self):
        self.write("program.py", self.COUNTS)
        for send, expected in ((os.killpg, "got 1\n"), (os.kill, "got 1\n")):
            process = subprocess.Popen([MILLPOND, "watch", "--quiet", "--", PYTHON, "program.py"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                       start_new_session=True)
            self.assertEqual(process.stdout.readline(), "ready\n")
            send(process.pid, signal.SIGTERM)
            self.assertEqual(process.stdout.read(), expected, send.__name__)
            self.assertEqual(process.wait(), 0)
            process.stdout.close()

    def test_stop_and_go_reach_the_program(self):
        self.write("program.py", "import os, time\nprint('ready', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.02)\nprint('done', flush=True)\n")
        # a group of its own, but not a session: the system stops no group that has no parent outside of it
        process = subprocess.Popen([MILLPOND, "watch", "--quiet", "--", PYTHON, "program.py"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                   preexec_fn=os.setpgrp)
        process.stdout.readline()
        child = children_of(process.pid)[0]
        state = lambda pid: proc(pid, "stat").rpartition(")")[2].split()[0]
        os.kill(process.pid, signal.SIGTSTP)
        self.wait_for(lambda: state(child) == "T" and state(process.pid) == "T")
        self.write("go", "")
        os.kill(process.pid, signal.SIGCONT)
        self.assertEqual(process.stdout.read(), "done\n")
        self.assertEqual(process.wait(), 0)
        process.stdout.close()

    def test_signals_masks_descriptors_and_environment_are_as_without_us(self):
        self.write("program.py", """\
            import os, signal, subprocess, sys
            status = [line for line in open("/proc/self/status") if line.startswith(("SigBlk", "SigIgn", "SigCgt"))]
            print(status, os.umask(0o77), os.listdir("/proc/self/fd"), open("program.py").fileno(), sorted(os.environ.items()), sys.path)
            try:
                import sitecustomize
                print(sitecustomize.__file__)
            except ImportError:
                print("none")
            print(type(print), type(sys.stdout.write), vars(sys.stdout), sys.excepthook is sys.__excepthook__)
            """)
        shell = "trap '' HUP PIPE; umask 027; export PYTHONPATH=$PWD/a:$PWD/b; exec \"$@\""
        bare = self.run_bare("sh", "-c", shell, "sh", PYTHON, "program.py")
        done, _ = self.watch(PYTHON, "program.py", before=["sh", "-c", shell, "sh"])
        self.assertEqual(done.stdout, bare.stdout, done.stderr)

    def test_a_child_that_is_given_a_copy_of_the_environment_is_watched_too(self):
        self.write("program.py", """\
            import os, subprocess, sys
            child = "import os, time; time.sleep(0.4); print('MILLPOND_WATCH' in os.environ, os.environ.get('EXTRA'), open('/proc/self/maps').read().count('millpond_probe') > 0)"
            for environment in (None, dict(os.environ, EXTRA="1"), {"PATH": os.environ["PATH"]}):
                subprocess.run([sys.executable, "-c", child], env=environment)
            """)
        done, _ = self.watch(PYTHON, "program.py")
        self.assertEqual(done.stdout, "False None True\nFalse 1 True\nFalse None True\n", done.stderr)

    def test_a_module_of_the_users_by_a_librarys_name_is_found(self):
        self.write("json.py", "WHO = 'mine'\n")
        self.write("program.py", "import json\nprint(json.WHO)\n")
        done, _ = self.watch(PYTHON, "program.py")
        self.assertEqual(done.stdout, "mine\n", done.stderr)

    def test_a_timeout_by_alarm_is_not_lost_among_prints(self):
        self.write("program.py", """\
            import signal, sys
            class Stop(Exception): pass
            def stop(number, frame): raise Stop
            signal.signal(signal.SIGALRM, stop)
            stops = 0
            for turn in range(30):
                try:
                    signal.setitimer(signal.ITIMER_REAL, 0.02)
                    for step in range(10 ** 9): print("step", step, "of", turn)
                except Stop:
                    stops += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            print(stops, file=sys.stderr)
            """)
        done, _ = self.watch(PYTHON, "program.py")
        self.assertIn("30\n", done.stderr[:10])

    def test_a_timeout_by_alarm_is_not_lost_among_prints_of_a_program_with_threads(self):
        # With other threads the signal may come at any moment of the agent's work, also while it reads the source for the first time.
        self.write("program.py", """\
            import os, signal, sys, threading, time
            class Stop(Exception): pass
            def stop(number, frame): raise Stop
            def main():
                signal.signal(signal.SIGALRM, stop)
                busy, stops, sink, real = True, 0, open(os.devnull, "w"), sys.stdout
                def allocates():
                    while busy: [bytes(3000) for _ in range(50)]
                others = [threading.Thread(target=allocates) for _ in range(2)]
                for thread in others: thread.start()
                for turn in range(5):
                    end = time.monotonic() + 5
                    try:
                        try:
                            sys.stdout = sink
                            signal.setitimer(signal.ITIMER_REAL, 0.013)
                            while time.monotonic() < end: print("step", stops, "of", turn)
                        finally:
                            sys.stdout = real
                    except Stop:
                        stops += 1
                busy = False
                for thread in others: thread.join()
                print(stops)
            main()
            """)
        for python in pythons().values():
            done, _ = self.watch(python, "program.py", env=dict(os.environ, MILLPOND_INTERVAL="3000"))
            self.assertEqual(done.stdout, "5\n", (python, done.stderr))


if __name__ == "__main__":
    if SANITIZED:
        print("not under a sanitizer: LD_PRELOAD and its run time exclude each other")
        sys.exit(0)
    unittest.main()
