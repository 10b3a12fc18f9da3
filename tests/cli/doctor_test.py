"""The doctor's commands on small programs: what they say, what they leave alone, and their exit codes. Programs are written into a folder of the test's own."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import unittest
import xml.etree.ElementTree as xml

from program import BUILD, PROGRAM, SANITIZED, InFolder

SOURCE = os.path.abspath(os.environ.get("MILLPOND_SOURCE_DIR", "."))
MILLPOND = os.path.abspath(PROGRAM)
FAKE_NVML = os.path.abspath(os.path.join(BUILD, "tests/libfake_nvml.so"))
OTHER_PYTHON = os.path.abspath(os.path.join(BUILD, "tests/libother_python.so"))
GCC = shutil.which("gcc")

LEAK = """\
import time
kept = []
def keep(size):
    kept.append(b"x" * size)
for epoch in range(1, 13):
    keep(4_000_000)
    time.sleep(0.12)
    print("epoch", epoch, flush=True)
"""
FLAT = """\
import time
for epoch in range(1, 13):
    block = b"x" * 4_000_000
    time.sleep(0.12)
    print("epoch", epoch, flush=True)
"""
CYCLES = """\
import gc, time
gc.disable()
class Node:
    pass
for epoch in range(1, 200):
    node = Node()
    node.itself = node
    node.data = b"x" * 4_000_000
    time.sleep(0.12)
    print("epoch", epoch, flush=True)
"""
LEAK_C = """\
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char* kept[1000];
static void keep(int i) {
  kept[i] = malloc(1000000); /* this line */
  memset(kept[i], 1, 1000000);
}
int main(void) {
  for (int i = 0; i < 90; ++i) {
    keep(i);
    usleep(100000);
  }
  return 0;
}
"""


class Doctor(InFolder):
    def write(self, name, text):
        """Its name: commands run in the folder."""
        super().write(name, text)
        return name

    def millpond(self, *arguments, code=0, **more):
        environment = dict(os.environ, NO_COLOR="1", **more.pop("environment", {}))
        done = subprocess.run([MILLPOND, *map(str, arguments)], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                              env=environment, timeout=300, **more)
        if code is not None:
            self.assertEqual(done.returncode, code, f"millpond {' '.join(map(str, arguments))}\n{done.stdout}\n{done.stderr}")
        return done

    def watched(self, text, *options, code=0, arguments=(), **more):
        """Watches a Python program; returns what --json says, and what the command did."""
        self.write("program.py", text)
        done = self.millpond("watch", "--json", "result.json", *options, "--", sys.executable, "program.py", *arguments, code=code, **more)
        with open(self.path("result.json")) as file:
            return json.load(file), done


class Watch(Doctor):
    def test_a_python_that_the_agent_does_not_know_says_nothing_of_it_and_the_answer_does(self):
        old = glob.glob(os.path.expanduser("~/.pyenv/versions/3.6.*/bin/python3"))
        others = [(path, "the frames of Python 3.6 are not known") for path in old[:1]]
        others += [(path, "PyPy: only native facts are seen") for path in [shutil.which("pypy3")] if path]
        if not others:
            self.skipTest("neither Python 3.6 nor PyPy is here")
        for path, told in others:
            self.write("program.py", "import sys\nprint(sys.version_info[:2], 'sitecustomize' in sys.modules)\n")
            bare = subprocess.run([path, "program.py"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            done = self.millpond("watch", "--force", "--", path, "program.py")
            self.assertEqual(done.stdout, bare.stdout)
            self.assertTrue(done.stderr.strip().startswith("millpond: "), done.stderr)
            self.assertIn(told, " ".join(done.stderr.split()))

    def test_a_python_whose_frames_are_not_known_is_told_and_still_watched(self):
        environment = {"LD_PRELOAD": OTHER_PYTHON, "OTHER_PYTHON_LINES": "1"}
        question = "import ctypes; print(ctypes.CFUNCTYPE(ctypes.c_char_p)(('Py_GetVersion', ctypes.CDLL(None)))()[:4].decode())"
        if subprocess.run([sys.executable, "-c", question], env={**os.environ, **environment}, stdout=subprocess.PIPE).stdout != b"3.99\n":
            self.skipTest("this Python has its functions in itself and cannot be given another version")
        found, done = self.watched(LEAK, environment=environment)
        told = "the frames of Python 3.99 are not known to this version of Millpond: where memory is allocated is told without lines of Python"
        self.assertEqual(found["not_seen"], told)
        self.assertIn(told, " ".join(done.stderr.split()))
        self.assertEqual(found["verdict"], "leak", done.stderr)
        known, done = self.watched(LEAK, "-o", "known.pond")
        self.assertNotIn("not_seen", known, done.stderr)

    def test_a_list_that_grows_is_a_leak_with_its_line_and_the_run_file_tells_it_again(self):
        found, done = self.watched(LEAK, "--lines")
        self.assertEqual(found["verdict"], "leak", done.stderr)
        blame = found["findings"][0]["blame"]
        self.assertEqual((os.path.basename(blame["file"]), blame["line"]), ("program.py", 4))
        self.assertEqual(found["findings"][0]["unit"], "epoch")
        self.assertAlmostEqual(found["findings"][0]["bytes_per_unit"], 4e6, delta=0.4e6)
        self.assertIn("millpond: LEAK", done.stderr)
        self.assertEqual(done.stdout.splitlines(), [f"epoch {i}" for i in range(1, 13)])
        line = [row for row in found["lines"] if row["line"] == 4]
        self.assertEqual(line[0]["source"], 'kept.append(b"x" * size)')
        self.assertAlmostEqual(line[0]["held"], 48e6, delta=5e6)
        self.assertIn('kept.append(b"x" * size)', done.stderr)

        # the same file, again
        text = self.millpond("report", "run.pond").stdout
        self.assertTrue(text.startswith("millpond: LEAK"), text)
        table = self.millpond("report", "run.pond", "--table", "--at", "epoch:6", "--limit", 3).stdout
        self.assertIn("program.py:4", table)
        self.assertIn("epoch 6", table)
        tree = self.millpond("report", "run.pond", "--tree").stdout
        self.assertRegex(tree, r"<module> .*program.py:6\n.*keep .*program.py:4")
        lines = self.millpond("report", "run.pond", "--lines").stdout
        self.assertRegex(lines, r"(?m)^ +4 .*kept\.append")
        again = json.loads(self.millpond("report", "run.pond", "--json", "-", "--table", "--tree", "--lines").stdout)
        self.assertEqual(again["verdict"], "leak")
        self.assertTrue(again["table"]["places"] and again["tree"]["calls"] and again["lines"])

        # for other tools
        collapsed = self.millpond("report", "run.pond", "--collapsed", "-").stdout
        for row in collapsed.splitlines():
            self.assertRegex(row, r"^.+ \d+$")
        self.assertRegex(collapsed, r"(?m)^<module> \(\S*program\.py:6\);keep \(\S*program\.py:4\)(;\S+ \(\S+\))? \d{8}$")
        grown = self.millpond("report", "run.pond", "--collapsed", "-", "--growth").stdout
        self.assertIn("keep", grown)
        self.millpond("report", "run.pond", "--speedscope", "s.json", "--pprof", "p.pb")
        with open(self.path("s.json")) as file:
            self.assertEqual(json.load(file)["profiles"][0]["type"], "sampled")
        with open(self.path("p.pb"), "rb") as file:
            self.assertIn(b"inuse_space", file.read())

        # mistakes
        self.assertIn("epoch:", self.millpond("report", "run.pond", "--table", "--at", "fold:3", code=2).stderr)
        self.millpond("report", "run.pond", "--json", "-", "--collapsed", "-", code=2)
        self.assertIn("nowhere.pond", self.millpond("report", "nowhere.pond", code=1).stderr)
        self.write("text.pond", "this is no run file")
        self.assertIn("text.pond", self.millpond("report", "text.pond", code=1).stderr)

        # and beside a run without the leak
        found, _ = self.watched(FLAT, "-o", "flat.pond")
        self.assertNotEqual(found["verdict"], "leak")
        both = self.millpond("report", "run.pond", "flat.pond").stdout
        self.assertTrue(both.startswith("The leak is gone: memory grew by"), both)
        self.assertIn("program.py:4", both)
        changed = json.loads(self.millpond("report", "flat.pond", "run.pond", "--json", "-").stdout)
        self.assertTrue(changed["sentence"].startswith("A leak is new"), changed["sentence"])
        self.millpond("report", "run.pond", "flat.pond", "--table", code=2)

    def test_output_passes_through_untouched_and_the_exit_code_is_the_programs_own(self):
        text = r"""
            import os, sys
            os.write(1, b"\x00\xff raw \x1b[31m\r\n")
            sys.stderr.write("to stderr\n")
            sys.stdout.write(sys.stdin.read().upper())
            sys.exit(7)
        """
        self.write("program.py", text)
        done = subprocess.run([MILLPOND, "watch", "--", sys.executable, "program.py"], cwd=self.folder, input=b"typed", stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 7)
        self.assertEqual(done.stdout, b"\x00\xff raw \x1b[31m\r\nTYPED")
        self.assertTrue(done.stderr.startswith(b"to stderr\n"))

    def test_json_on_standard_output_is_there_alone_when_the_program_prints_nothing(self):
        self.write("program.py", "pass")
        done = self.millpond("watch", "--json", "-", "--", sys.executable, "program.py")
        found = json.loads(done.stdout)
        self.assertEqual(found["program"]["exit_code"], 0)
        self.assertNotIn("millpond:", done.stderr)

    def test_run_files_are_never_written_over_unless_forced(self):
        self.write("program.py", "pass")
        watch = lambda *options, **more: self.millpond("watch", *options, "--", sys.executable, "program.py", **more)
        watch()
        watch()
        self.assertTrue(os.path.exists(self.path("run.pond")) and os.path.exists(self.path("run-2.pond")))
        watch("-o", "mine.pond")
        size = os.stat(self.path("mine.pond"))
        refused = watch("-o", "mine.pond", code=2)
        self.assertIn("mine.pond", refused.stderr)
        self.assertEqual(os.stat(self.path("mine.pond")).st_mtime_ns, size.st_mtime_ns)
        watch("-o", "mine.pond", "--force")
        self.assertNotEqual(os.stat(self.path("mine.pond")).st_mtime_ns, size.st_mtime_ns)

    def test_programs_that_cannot_be_started_are_mistakes_that_say_what_to_do(self):
        self.assertIn("no-such-program", self.millpond("watch", "--", "no-such-program", code=2).stderr)
        self.assertIn("python", self.millpond("watch", "--", "./" + self.write("plain.py", "pass"), code=2).stderr)
        self.millpond("watch", "--", "./missing", code=2)
        self.millpond("watch", code=2)
        self.millpond("watch", "--pid", 2**22 + 17, code=2)
        self.millpond("watch", "--no-such-option", "--", "true", code=2)
        self.assertEqual([name for name in os.listdir(self.folder) if name.endswith(".pond")], [])

    def test_whatever_ends_the_program_the_report_is_there(self):
        loop = "for epoch in range(1, 100):\n    kept.append(b'x' * 2_000_000)\n    time.sleep(0.05)\n    print('epoch', epoch)\n    "
        for name, ending, code in (("killed", "os.kill(os.getpid(), signal.SIGKILL)", -9), ("_exit", "os._exit(9)", 9),
                                   ("segfault", "ctypes.string_at(0)", -11), ("exception", "raise ValueError('x')", 1)):
            with self.subTest(name):
                text = "import ctypes, os, signal, time\nkept = []\n" + loop + f"if epoch == 8: {ending}\n"
                found, done = self.watched(text, "-o", name + ".pond", code=code)
                self.assertEqual(found["program"]["signal"], -code if code < 0 else None)
                self.assertGreaterEqual(found["phases"].get("epoch", 0), 7, found["phases"])
                self.assertGreater(found["peak_rss"], 16e6)
                held = json.loads(self.millpond("report", name + ".pond", "--table", "--at", "end", "--json", "-").stdout)["table"]["places"]
                self.assertIn(("program.py", 4), [(os.path.basename(p["file"]), p["line"]) for p in held])

    @unittest.skipIf(SANITIZED, "a sanitizer needs more address space than there is")
    def test_a_program_that_runs_out_of_memory_is_reported(self):
        text = "import time\nkept = []\nfor epoch in range(1, 1000):\n    kept.append(b'x' * 20_000_000)\n    time.sleep(0.05)\n    print('epoch', epoch)\n"
        self.write("run.sh", "ulimit -v 900000\nexec \"$@\"\n")
        self.write("program.py", text)
        done = self.millpond("watch", "--json", "result.json", "--", "sh", "run.sh", sys.executable, "program.py", code=1)
        self.assertIn("MemoryError", done.stderr)
        with open(self.path("result.json")) as file:
            found = json.load(file)
        self.assertEqual(found["verdict"], "leak", found["sentence"])
        self.assertGreater(found["peak_rss"], 200e6)

    def test_a_program_that_says_nothing_is_looked_at_by_the_clock_also_when_shells_became_it(self):
        text = """\
            import time
            class Archive:
                def __init__(self):
                    self.rows = []
                def add(self, row):
                    self.rows.append(row)
            def work(archive):
                for i in range(90):
                    archive.add(b"x" * 1_500_000)
                    time.sleep(0.1)
            work(Archive())
            """
        self.write("program.py", text)
        self.millpond("watch", "--json", "result.json", "--", "sh", "-c", """exec sh -c 'exec "$0" program.py' "$0" """, sys.executable)
        with open(self.path("result.json")) as file:
            found = json.load(file)
        finding = found["findings"][0]
        self.assertEqual((found["verdict"], finding["cause"], finding["unit"]), ("leak", "C14", "call"), found["sentence"])
        self.assertEqual((finding["blame"]["line"], finding["blame"]["function"]), (6, "Archive.add"))
        self.assertLess(abs(finding["bytes_per_unit"] / 1.5e6 - 1), 0.3)

    def test_the_file_of_a_long_run_stays_small(self):
        # As many rounds as ten hours of training have, of several kinds, and hundreds of places that hold memory. Bounds are by number, not by time.
        text = """\
            import logging, sys
            names = {}
            exec(compile("".join(f"def place_{i}(n):\\n    return bytearray(n)\\n" for i in range(400)), "places.py", "exec"), names)
            kept = [names[f"place_{i}"](300_000) for i in range(400)]
            logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(message)s")
            for epoch in range(20000):
                at = epoch % 400
                kept[at] = names[f"place_{at}"](300_000 + at)  # as large as what it takes the place of
                print(f"step {epoch} lr {epoch}")
                logging.info("saved %d in %f s", epoch, 0.1)
                print(f"epoch {epoch}: loss {1 / (epoch + 1):.4f}")
            """
        found, done = self.watched(textwrap.dedent(text), "-o", "long.pond")
        self.assertGreaterEqual(found["phases"].get("epoch", 0), 8)  # at most one in 50 ms is marked, and a quick machine is through in half a second
        self.assertLess(os.path.getsize(self.path("long.pond")), 20_000_000)
        self.assertNotEqual(found["verdict"], "leak", found["sentence"])

    def test_a_program_that_says_too_much_cannot_fill_the_disk(self):
        text = """\
            import ctypes, json, time
            note = ctypes.CDLL(None).millpond_probe_note
            note.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
            text = json.dumps({"note": "counters", "values": {}, "more": "x" * 100_000}).encode()
            for epoch in range(400):
                note(text, len(text))
                time.sleep(0.005)
                print(f"epoch {epoch}")
            """
        found, done = self.watched(textwrap.dedent(text), "-o", "loud.pond")
        self.assertLess(os.path.getsize(self.path("loud.pond")), 20_000_000)
        self.assertGreater(found["dropped_events"], 100)

    def test_ctrl_c_reaches_the_program_and_keeps_the_report(self):
        self.write("program.py", LEAK.replace("13", "1000"))
        process = subprocess.Popen([MILLPOND, "watch", "--", sys.executable, "program.py"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, start_new_session=True)
        for line in process.stdout:
            if line.startswith("epoch 7"):
                break
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertIn("KeyboardInterrupt", err)
        self.assertEqual(process.returncode, -signal.SIGINT, err)
        self.assertIn("millpond: ", err)
        self.assertIn("epoch:", self.millpond("report", "run.pond", "--table", "--at", "none:1", code=2).stderr)

    def test_a_process_that_runs_already_and_cannot_be_entered_is_seen_from_outside(self):
        other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        try:
            time.sleep(0.3)
            done = self.millpond("watch", "--pid", other.pid, "--for", 1.5, "--json", "result.json", environment={"PATH": "/nowhere"})  # no gdb there
            self.assertIsNone(other.poll(), "the process was left alone")
            self.assertIn("not where it allocates", " ".join(done.stderr.split()))
            self.assertIn("no snapshot", self.millpond("report", "run.pond", "--table", code=2).stderr)
        finally:
            other.kill()
            other.wait()

    def test_gpus_are_told_in_totals_where_there_are_any(self):
        text = """\
            import os, time
            def hold(mib):
                with open("new.txt", "w") as file:
                    print(f"device {1 << 37} {(mib + 512) << 20} NVIDIA H200", file=file)
                    print(f"device {1 << 36} {100 << 20} NVIDIA A100", file=file)
                    print(f"process 0 1 {512 << 20}", file=file)
                    print(f"process 0 {os.getpid()} {mib << 20}", file=file)
                os.replace("new.txt", "nvml.txt")
            for epoch in range(1, 6):
                hold(64 * epoch)
                time.sleep(0.3)
                print("epoch", epoch, flush=True)
            time.sleep(1.5)
            """
        driver = {"MILLPOND_NVML": FAKE_NVML, "MILLPOND_FAKE_NVML": self.path("nvml.txt")}
        self.write("nvml.txt", f"device {1 << 37} {512 << 20} NVIDIA H200\ndevice {1 << 36} {100 << 20} NVIDIA A100\n")
        found, done = self.watched(text, environment=driver)
        first, second = found["gpu"]
        self.assertEqual((first["device"], first["name"], first["total"]), (0, "NVIDIA H200", 1 << 37))
        self.assertEqual((first["by_program_peak"], first["by_program_last"]), (320 << 20, 320 << 20))
        self.assertLess(first["by_program_first"], 320 << 20)
        self.assertEqual((first["used_peak"], first["used_last"]), (832 << 20, 832 << 20))
        self.assertEqual((second["name"], second["used_peak"], second["by_program_peak"]), ("NVIDIA A100", 100 << 20, 0))
        self.assertRegex(done.stderr, r"gpu 0 +NVIDIA H200: program 320 MiB at most of 128 GiB; first .*, last 320 MiB")
        self.assertNotIn("gpu 1", done.stderr)
        again = self.millpond("report", "run.pond", "--json", "-").stdout
        self.assertEqual(json.loads(again)["gpu"], found["gpu"])

        # a driver that does not say whose memory it is, and one that does not answer
        self.write("nvml.txt", f"processes 3\ndevice {1 << 37} {512 << 20} NVIDIA H200\n")
        found, done = self.watched("import time; time.sleep(1.3)", "-o", "untold.pond", environment=driver)
        self.assertEqual((found["gpu"][0]["used_peak"], found["gpu"][0]["by_program_peak"]), (512 << 20, None))
        self.assertIn("the driver does not tell here", " ".join(done.stderr.split()))
        self.write("nvml.txt", "init 9\n")
        found, done = self.watched("pass", "-o", "none.pond", environment=driver)
        self.assertEqual(found["gpu"], [])

    @unittest.skipUnless(GCC, "no gcc here")
    def test_a_leak_in_c_is_found_with_its_line(self):
        self.write("leak.c", LEAK_C)
        subprocess.run([GCC, "-g", "-O0", "-o", self.path("leak"), self.path("leak.c")], check=True)
        self.millpond("watch", "--json", "result.json", "--", "./leak")
        with open(self.path("result.json")) as file:
            found = json.load(file)
        self.assertEqual(found["verdict"], "leak", found["sentence"])
        table = json.loads(self.millpond("report", "run.pond", "--table", "--json", "-").stdout)["table"]["places"]
        self.assertEqual((os.path.basename(table[0]["file"]), table[0]["line"]), ("leak.c", 6))
        blame = found["findings"][0]["blame"] or {}
        self.assertEqual((os.path.basename(blame.get("file", "")), blame.get("line")), ("leak.c", 6), found["findings"][0])

    @unittest.skipUnless(GCC, "no gcc here")
    def test_a_static_program_runs_and_is_said_to_be_seen_from_outside_only(self):
        self.write("plain.c", "#include <unistd.h>\nint main(void) { return write(1, \"hello\\n\", 6) == 6 ? 5 : 1; }\n")
        if subprocess.run([GCC, "-static", "-o", self.path("plain"), self.path("plain.c")], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("no static C library here")
        done = self.millpond("watch", "--", "./plain", code=5)
        self.assertEqual(done.stdout, "hello\n")
        self.assertIn("statically", done.stderr)


class Check(Doctor):
    def check(self, text, *options, code, **more):
        self.write("program.py", text)
        return self.millpond("check", *options, "--", sys.executable, "program.py", code=code, **more)

    def test_exit_codes_limits_junit_suppressions_and_annotations(self):
        done = self.check(LEAK, "--junit", "r.xml", "--github", "--json", "r.json", code=1)
        suite = xml.parse(self.path("r.xml")).getroot()
        self.assertEqual((suite.tag, suite.get("failures")), ("testsuite", "1"))
        self.assertTrue(suite.find("testcase/failure").get("message"))
        self.assertRegex(done.stderr, r"(?m)^::error file=\S*program\.py,line=4::")
        with open(self.path("r.json")) as file:
            found = json.load(file)
        self.assertEqual(found["check"]["exit_code"], 1)
        self.check(LEAK, "--max-growth", "5MB/epoch", code=0)
        self.check(LEAK, "--max-growth", "1MB/epoch", code=1)
        self.write("known.txt", "# a comment\nprogram.py:4\n")
        self.check(LEAK, "--suppress", "known.txt", "--junit", "ok.xml", code=0)
        self.assertEqual(xml.parse(self.path("ok.xml")).getroot().get("failures"), "0")

    def test_a_flat_program_passes_and_its_peak_is_compared(self):
        self.check(FLAT, "--baseline", "memory.json", "--write-baseline", code=0)
        self.check(FLAT, "--baseline", "memory.json", "--tolerance", 50, code=0)
        with open(self.path("memory.json")) as file:
            baseline = json.load(file)
        self.assertEqual(baseline["peak"], baseline["peak_rss"], "it was alone")
        baseline["peak"] //= 4
        with open(self.path("memory.json"), "w") as file:
            json.dump(baseline, file)
        self.assertIn("baseline", self.check("import time; time.sleep(0.3)", "--baseline", "memory.json", code=1).stderr)
        self.check("import time; time.sleep(0.3)", "--max-peak", "1MB", code=1)
        self.check("import time; time.sleep(0.3)", "--max-peak", "4GB", code=0)

    def test_limits_and_baselines_are_of_all_processes_together(self):
        children = """\
            import subprocess, sys, time
            hold = "import time; kept = b'x' * 80_000_000; time.sleep(1.5)"
            several = [subprocess.Popen([sys.executable, "-c", hold]) for _ in range(3)]
            for epoch in range(1, 13):
                time.sleep(0.15)
                print("epoch", epoch, flush=True)
            for child in several:
                child.wait()
            """
        done = self.check(children, "--max-peak", "150MB", "--json", "r.json", "--baseline", "memory.json", "--write-baseline", "--allow-unsure", code=1)
        self.assertRegex(done.stderr, r"the peak of its 4 processes together is \d+ MiB; at most 143 MiB is allowed")
        self.assertRegex(done.stderr, r"with 4 processes \d+ MiB at most")
        with open(self.path("r.json")) as file:
            found = json.load(file)
        self.assertLess(found["peak_rss"], 150_000_000)
        self.assertEqual(found["processes_seen"], 4)
        with open(self.path("memory.json")) as file:
            baseline = json.load(file)
        self.assertGreater(baseline["peak"], 240_000_000)
        self.assertEqual(baseline["peak_rss"], found["peak_rss"])
        baseline["peak"] //= 2
        with open(self.path("memory.json"), "w") as file:
            json.dump(baseline, file)
        self.assertIn("the peak of its 4 processes together is", self.check(children, "--baseline", "memory.json", "--allow-unsure", code=1).stderr)
        # A baseline that was written before told of the main process alone.
        del baseline["peak"]
        with open(self.path("memory.json"), "w") as file:
            json.dump(baseline, file)
        self.check(children, "--baseline", "memory.json", "--tolerance", 50, "--allow-unsure", code=0)
        self.millpond("watch", "--quiet", "-o", "one.pond", "--", sys.executable, "program.py", code=0)
        self.write("program.py", FLAT)
        self.millpond("watch", "--quiet", "-o", "two.pond", "--", sys.executable, "program.py", code=0)
        told = json.loads(self.millpond("report", "one.pond", "two.pond", "--json", "-").stdout)
        self.assertIn("the peak of all processes together falls", told["sentence"])
        self.assertGreater(told["before"]["tree_peak"], 240_000_000)
        self.assertEqual(told["after"]["tree_peak"], told["after"]["peak_rss"])

    def test_a_program_that_fails_is_an_error_in_junit_and_not_a_test_that_passed(self):
        self.check("raise SystemExit(4)", "--junit", "r.xml", code=3)
        suite = xml.parse(self.path("r.xml")).getroot()
        self.assertEqual((suite.get("tests"), suite.get("failures"), suite.get("errors")), ("1", "0", "1"))
        self.assertEqual(suite.find("testcase/error").get("message"), "the program ended with 4")

    def test_a_program_that_fails_is_3_and_mistakes_are_2(self):
        self.check("raise SystemExit(4)", code=3)
        self.check("import os; os.kill(os.getpid(), 9)", code=3)
        self.check("pass", "--max-growth", "1MB/fortnight", code=2)
        self.check("pass", "--max-growth", "much", code=2)
        for unit in ("round", "task", "request"):
            self.check("pass", "--max-growth", f"1MB/{unit}", "--allow-unsure", code=0)
        self.check("pass", "--max-peak", "much", code=2)
        self.check("pass", "--write-baseline", code=2)
        self.millpond("check", code=2)
        self.assertIn("nowhere.txt", self.check("pass", "--suppress", "nowhere.txt", code=1).stderr)


class Bisect(Doctor):
    def bisect(self, text, *options, code=0):
        self.write("program.py", text)
        done = self.millpond("bisect", *options, "--", sys.executable, "program.py", code=code)
        return done

    def test_what_stops_the_growth_is_named_and_the_program_is_stopped(self):
        self.write("program.py", CYCLES)
        done = self.bisect(CYCLES, "--only", "callbacks,gc", "--seconds", 4, "-o", "runs", "--json", "r.json")
        self.assertIn("cyclic garbage", done.stdout)
        self.assertIn("Left out: callbacks (no Keras in this program).", done.stdout)
        with open(self.path("r.json")) as file:
            found = json.load(file)
        self.assertEqual(found["removed_by"], "gc", found)
        self.assertNotIn("epoch 3", done.stdout + done.stderr)
        with open(self.path("runs/base.log")) as file:
            self.assertIn("epoch 3", file.read())
        self.assertTrue(os.path.exists(self.path("runs/gc.pond")))
        left = subprocess.run(["ps", "-eo", "args"], stdout=subprocess.PIPE, text=True).stdout if shutil.which("ps") else ""
        self.assertNotIn(self.folder, left)

    def test_a_leak_that_no_variant_stops_is_1_and_nothing_that_grows_is_0(self):
        done = self.bisect(LEAK, "--only", "gc", code=1)
        self.assertIn("in every variant (gc)", done.stdout)
        found = json.loads(self.bisect(FLAT, "--only", "gc", "--json", "-").stdout)
        self.assertFalse(found["grows"])
        self.assertEqual(found["variants"], [])
        self.assertEqual([name for name in os.listdir(self.folder)], ["program.py"])

    def test_mistakes(self):
        self.assertIn("callbacks, validation", self.bisect("pass", "--only", "calbacks", code=2).stderr)
        self.millpond("bisect", code=2)
        self.millpond("bisect", "--", "no-such-program", code=2)
        failed = self.bisect("raise ValueError('odd')", code=1)
        self.assertIn("odd", failed.stderr)


TESTS = """
import time
import pytest

KEPT = []

@pytest.fixture
def size():
    return 2_000_000

@pytest.mark.memory(max_growth="100 kB/call", repeat=30)
def test_leaks(size):
    KEPT.append(b"x" * size)
    time.sleep(0.02)

@pytest.mark.memory(max_growth="100 kB/call", repeat=30)
def test_flat(size):
    assert len(b"x" * size) == size
    time.sleep(0.02)

@pytest.mark.memory(max_peak="2 GB")
def test_fails():
    assert "one" == "two"

@pytest.mark.memory(max_peak="2 GB")
def test_skips():
    pytest.skip("not today")

@pytest.mark.memory(most_growth=3)
def test_typo():
    pass

def test_plain():
    pass
"""


class Pytest(Doctor):
    def pytest(self, *arguments, **environment):
        plugin = os.path.join(SOURCE, "python")
        return subprocess.run([sys.executable, "-m", "pytest", "-p", "millpond.pytest_plugin", "-p", "no:cacheprovider", *arguments], cwd=self.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
                              env=dict(os.environ, PYTHONPATH=plugin, **{"MILLPOND": MILLPOND, **environment}))

    def setUp(self):
        super().setUp()
        try:
            import pytest  # noqa: F401
        except ImportError:
            self.skipTest("no pytest here")

    def test_marked_tests_fail_when_they_leak_and_say_why(self):
        self.write("test_memory.py", TESTS)
        done = self.pytest("-rA", "test_memory.py")
        for outcome, name in (("FAILED", "test_leaks"), ("PASSED", "test_flat"), ("FAILED", "test_fails"), ("FAILED", "test_typo"), ("PASSED", "test_plain")):
            self.assertRegex(done.stdout, rf"(?m)^{outcome} test_memory.py::{name}\b")
        self.assertRegex(done.stdout, r"(?m)^SKIPPED .*not today")
        told = re.search(r"memory grows by (\d\.\d+) MiB per call; at most 100kB/call is allowed", done.stdout)
        self.assertTrue(told and abs(float(told[1]) * 2**20 / 2_000_000 - 1) < 0.15, done.stdout)
        self.assertIn("test_memory.py:13", done.stdout)
        self.assertIn("assert 'one' == 'two'", done.stdout)
        self.assertIn("most_growth", done.stdout)
        self.assertEqual(done.returncode, 1)
        self.assertEqual([name for name in os.listdir(self.folder) if name.endswith(".pond")], [])

    def test_a_whole_run_and_a_missing_program(self):
        self.write("test_plain.py", "import pytest\n\ndef test_plain():\n    pass\n\n@pytest.mark.memory\ndef test_marked():\n    pass\n")
        done = self.pytest("--millpond", "test_plain.py")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("2 passed", done.stdout)
        self.assertIn("millpond check: passed", done.stdout)
        self.assertEqual(self.pytest("--millpond", "--millpond-max-peak", "1MB", "test_plain.py").returncode, 1)
        missing = self.pytest("test_plain.py", MILLPOND="/no/such/millpond")
        self.assertIn("/no/such/millpond", missing.stdout)
        self.assertEqual(missing.returncode, 1)
        self.assertEqual(self.pytest("--millpond-missing=skip", "test_plain.py", MILLPOND="/no/such/millpond").returncode, 0)


if __name__ == "__main__":
    unittest.main()
