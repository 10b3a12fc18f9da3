"""What a person sees of the doctor in a terminal: the program's own output untouched, one screen of answer, numbers that agree; and what machines read of it."""
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
import unittest

import plain_yaml
from doctor_test import FLAT, LEAK, MILLPOND, SOURCE, Doctor

TITLE = re.compile(rb"\x1b\]2;[^\x07]*\x07|\x1b\[2[23];2t")


class InTerminal(Doctor):
    def in_terminal(self, *arguments, term="xterm-256color", when=None, then=None, stderr_only=False, columns=None):
        """Runs the command with a terminal as its controlling one; returns what the terminal was sent, and the exit code. Once `when`, asked with what was sent so far, is
        true, `then` is called with the terminal's other end."""
        master, slave = pty.openpty()
        if columns:
            import fcntl
            import struct
            import termios

            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        streams = {"stdin": slave, "stdout": slave, "stderr": slave}
        if stderr_only:
            streams.update(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        environment = dict(os.environ, NO_COLOR="1", TERM=term)
        process = subprocess.Popen([MILLPOND, *map(str, arguments)], cwd=self.folder, env=environment, start_new_session=True, preexec_fn=lambda: self.own(slave), **streams)
        os.close(slave)
        seen, waiting, end = b"", when is not None, time.monotonic() + 120
        while time.monotonic() < end:
            ready, _, _ = select.select([master], [], [], 0.1)
            if ready:
                try:
                    seen += os.read(master, 65536)
                except OSError:
                    break
            elif process.poll() is not None:
                break
            if waiting and when(seen):
                then(master)
                waiting = False
        if waiting:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=120)
        os.close(master)
        self.assertFalse(waiting, seen)
        return seen.replace(b"\r\n", b"\n"), process.returncode

    @staticmethod
    def own(terminal):
        import fcntl
        import termios

        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


class Terminal(InTerminal):
    def test_a_prompt_is_never_erased_and_news_are_in_the_title_of_the_window(self):
        self.write("program.py", 'import sys\nname = input("your name? ")\nprint("hello", name)\n')
        news_beside_prompt = lambda seen: seen.partition(b"your name? ")[2].count(b"\x1b]2;millpond: ") >= 2
        seen, code = self.in_terminal("watch", "--", sys.executable, "program.py", when=news_beside_prompt, then=lambda terminal: os.write(terminal, b"Ada\n"))
        self.assertEqual(code, 0, seen)
        self.assertNotIn(b"\r\x1b[K", seen)
        self.assertIn(b"\x1b]2;millpond: ", seen)
        plain = TITLE.sub(b"", seen)
        self.assertTrue(plain.startswith(b"your name? Ada\nhello Ada\n"), plain)
        self.assertNotIn(b"\x1b", plain)
        self.assertEqual((seen.count(b"\x1b[22;2t"), seen.count(b"\x1b[23;2t")), (1, 1), "the title of before is kept and comes back")

    def test_a_terminal_without_titles_and_a_quiet_run_get_the_programs_bytes_alone(self):
        text = "import sys, time\nfor i in range(5):\n    sys.stdout.write(f'\\rstep {i}')\n    sys.stdout.flush()\n    time.sleep(0.5)\nprint()\n"
        self.write("program.py", text)
        wanted = b"".join(b"\rstep %d" % i for i in range(5)) + b"\n"
        for options, term in (((), "dumb"), ((), "linux"), (("--quiet",), "xterm")):
            with self.subTest(term=term):
                seen, code = self.in_terminal("watch", "--force", "-o", "r.pond", *options, "--", sys.executable, "program.py", term=term)
                self.assertEqual(code, 0, seen)
                self.assertTrue(seen.startswith(wanted), seen)
                self.assertNotIn(b"\x1b", seen)

    def test_a_line_is_written_over_only_where_none_of_the_programs_streams_is_the_terminal(self):
        self.write("waits.py", "import os, time\nwhile not os.path.exists('go'): time.sleep(0.05)\n")  # until the line was seen
        self.write("program.py", "import time\ntime.sleep(2.5)\n")
        command = ["watch", "--force", "-o", "r.pond", "--"]
        line_written = lambda seen: b"\r\x1b[Kmillpond: " in seen
        self.in_terminal(*command, "sh", "-c", 'exec "$0" waits.py >out 2>&1 </dev/null', sys.executable, term="dumb", when=line_written, then=lambda _: self.write("go", ""))
        seen, _ = self.in_terminal(*command, "sh", "-c", 'exec "$0" program.py >out </dev/null', sys.executable, term="dumb")
        self.assertNotIn(b"\x1b[K", seen)  # its standard error still is
        seen, _ = self.in_terminal(*command, "sh", "-c", '("$0" program.py); true >out', sys.executable, term="dumb", stderr_only=True)
        self.assertNotIn(b"\x1b[K", seen)

    def test_the_whole_answer_of_a_leak_fits_on_one_screen_and_says_no_fact_twice(self):
        _, done = self.watched(LEAK)
        answer = done.stderr[done.stderr.index("millpond: LEAK"):]
        lines = answer.splitlines()
        self.assertLessEqual(len(lines), 23, answer)
        self.assertLessEqual(max(map(len, lines)), 100, answer)
        self.assertRegex(" ".join(answer.split()), r"Memory grows by 3\.\d+ MiB every epoch: at `program.py:4` the list `\S*kept` keeps every bytes added to it\.")
        self.assertEqual(answer.count("At this rate"), 1)
        self.assertRegex(lines[-1], r"^  file +run\.pond \(`millpond report -v run\.pond` says more\)$")
        self.assertNotIn("because", answer)
        again = self.millpond("report", "run.pond").stdout
        self.assertLessEqual(len(again.splitlines()), 24)
        verbose = self.millpond("report", "run.pond", "-v").stdout
        for word in ("because", "measured", "explained", "accounts"):
            self.assertIn(word, verbose)

    def test_epochs_are_counted_as_the_program_prints_them_and_one_beyond_the_last_is_refused(self):
        found, _ = self.watched(LEAK.replace("range(1, 13)", "range(0, 12)"))
        self.assertEqual(found["verdict"], "leak", found["sentence"])
        report = lambda at, code=0: self.millpond("report", "run.pond", "--table", "--at", at, code=code)
        self.assertIn("epoch 0", report("epoch:0").stdout)
        self.assertIn("epoch 11", report("epoch:11").stdout)
        refused = report("epoch:900", code=2).stderr
        self.assertIn("there is no epoch:900 in this run", refused)
        self.assertIn("epoch:0 to epoch:11", refused)
        index = found["findings"][0]["forecast"]["unit_index"]
        self.assertAlmostEqual(index, 11 + found["findings"][0]["forecast"]["units_left"], delta=0.01)

    def test_a_program_that_ends_at_once_gets_no_verdict(self):
        done = self.millpond("watch", "--json", "r.json", "--", "ls", "/nonexist", code=2)
        self.assertIn("millpond: TOO SHORT TO JUDGE", done.stderr)
        self.assertNotIn("FLAT", done.stderr)
        with open(self.path("r.json")) as file:
            found = json.load(file)
        self.assertEqual((found["verdict"], found["too_short"]), ("unsure", True))

    def test_the_peak_is_the_programs_own_and_not_that_of_a_child(self):
        text = """\
            import subprocess, sys, time
            time.sleep(0.4)
            subprocess.run([sys.executable, "-c", "x = b'x' * 300_000_000"], check=True)
            time.sleep(0.4)
            """
        found, _ = self.watched(text)
        self.assertLess(found["peak_rss"], 150e6)

    def test_a_peak_between_two_looks_is_told_beside_the_highest_that_was_sampled(self):
        text = "import mmap, time\ntime.sleep(0.4)\nx = mmap.mmap(-1, 200_000_000, flags=mmap.MAP_PRIVATE | mmap.MAP_POPULATE)\nx.close()\ntime.sleep(0.4)\n"
        found, _ = self.watched(text)
        self.assertGreater(found["peak_rss"], 200e6)
        self.assertLessEqual(found["sampled_peak"], found["peak_rss"])

    def test_probes_of_ours_are_marked_in_the_json(self):
        found, _ = self.watched(LEAK)
        self.assertTrue(found["trims"])
        for trim in found["trims"]:
            self.assertTrue(0 < trim["t"] < found["seconds"] and 0 < trim["after_trim"] < 1.1 * trim["before"], trim)


class Mistyped(Doctor):
    def test_what_was_meant_is_guessed(self):
        self.assertIn("did you mean watch?", self.millpond("wacth", "--", "true", code=2).stderr)
        self.assertIn("did you mean report?", self.millpond("reprot", "x.pond", code=2).stderr)
        self.assertIn("did you mean --epochs?", self.millpond("train", "tiny", "--synthetic", "--epcohs", "3", code=2).stderr)
        self.assertIn("did you mean --limit?", self.millpond("watch", "--limt", "8GiB", "--", "true", code=2).stderr)
        self.assertIn("did you mean --max-growth?", self.millpond("check", "--max-grwoth=1MB", "--", "true", code=2).stderr)
        self.assertIn("millpond watch -- python train.py", self.millpond("train.py", code=2).stderr)
        self.assertIn("millpond watch -- sh", self.millpond("sh", "run.sh", code=2).stderr)
        far = self.millpond("zzzzzz", code=2).stderr
        self.assertNotIn("did you mean", far)
        self.assertIn("watch", far)

    def test_limit_is_one_of_memory_and_rows_are_rows(self):
        _, _ = self.watched(LEAK)
        self.assertNotIn("--limit", self.millpond("report", "--help").stdout)
        for option in ("--rows", "--limit"):  # the second is its name of before
            self.assertIn("more places", self.millpond("report", "run.pond", "--table", option, 1).stdout)


class Check(InTerminal):
    UNSURE = "import time\nkept = []\nfor epoch in range(1, 5):\n    kept.append(b'x' * 40_000_000)\n    time.sleep(0.1)\n    print('epoch', epoch, flush=True)\n"

    def check(self, text, *options, code):
        self.write("program.py", text)
        return self.millpond("check", *options, "--", sys.executable, "program.py", code=code)

    def test_unsure_has_an_exit_code_of_its_own_unless_it_is_allowed(self):
        done = self.check(self.UNSURE, "--json", "r.json", "--junit", "r.xml", "--sarif", "r.sarif", "--github", code=4)
        self.assertIn("millpond check: unsure", done.stderr)
        self.assertIn("::warning::", done.stderr)
        with open(self.path("r.json")) as file:
            found = json.load(file)
        self.assertEqual((found["verdict"], found["check"]["exit_code"]), ("unsure", 4))
        with open(self.path("r.sarif")) as file:
            result, = json.load(file)["runs"][0]["results"]
        self.assertEqual((result["ruleId"], result["level"]), ("unsure", "warning"))
        self.check(self.UNSURE, "--allow-unsure", code=0)
        self.millpond("check", "--", "true", code=4)  # too short to judge
        self.check(self.UNSURE + "raise SystemExit(3)\n", code=3)

    def test_sarif_has_what_code_scanning_reads(self):
        os.mkdir(self.path("a folder"))
        self.write("a folder/train me.py", LEAK)
        self.millpond("check", "--sarif", "memory.sarif", "--github", "--", sys.executable, self.path("a folder/train me.py"), code=1)
        with open(self.path("memory.sarif")) as file:
            found = json.load(file)
        self.check_sarif(found)
        run, = found["runs"]
        result, = run["results"]
        self.assertEqual((result["ruleId"], result["level"]), ("C14", "error"))
        place = result["locations"][0]["physicalLocation"]
        self.assertEqual(place["artifactLocation"], {"uri": "a%20folder/train%20me.py", "uriBaseId": "%SRCROOT%"})
        self.assertEqual(place["region"]["startLine"], 4)
        self.assertNotIn(self.folder, json.dumps(found))

        self.check(FLAT, "--sarif", "flat.sarif", "--max-peak", "1MB", code=1)
        with open(self.path("flat.sarif")) as file:
            found = json.load(file)
        self.check_sarif(found)
        self.assertEqual(found["runs"][0]["results"][0]["ruleId"], "peak")
        self.assertEqual(found["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "program.py")
        self.check(FLAT, "--sarif", "good.sarif", code=0)
        with open(self.path("good.sarif")) as file:
            found = json.load(file)
        self.check_sarif(found)
        self.assertEqual(found["runs"][0]["results"], [])

    def test_sarif_always_has_a_place_that_is_one(self):
        self.write("native.sh", "#!/bin/sh\nsleep 0.3\n")
        os.chmod(self.path("native.sh"), 0o755)
        self.write("test_it.py", "def test_it():\n    pass\n")
        os.makedirs(self.path("pack/inner"))
        self.write("pack/inner/__main__.py", "import time\ntime.sleep(0.2)\n")
        self.write("pack/__init__.py", "")
        self.write("pack/inner/__init__.py", "")
        leak = LEAK + "\n"
        for words, uri in ((["true"], "."), ([sys.executable, "-c", leak], "."), ([sys.executable, "-c", "pass"], "."), (["./native.sh"], "native.sh"),
                           ([sys.executable, "-m", "pack.inner"], "pack/inner/__main__.py"), (["sh", "-c", "sleep 0.1", "test_it.py::test_it"], "test_it.py")):
            with self.subTest(words=words[:2]):
                done = subprocess.run([MILLPOND, "check", "--quiet", "--force", "-o", "r.pond", "--max-peak", "1kB", "--sarif", "r.sarif", "--", *words], cwd=self.folder, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE, text=True, timeout=120)
                self.assertIn(done.returncode, (1, 4), done.stderr)
                with open(self.path("r.sarif")) as file:
                    found = json.load(file)
                self.check_sarif(found)
                results = found["runs"][0]["results"]
                self.assertTrue(results)
                for result in results:
                    place, = result["locations"]
                    self.assertEqual(place["physicalLocation"]["artifactLocation"]["uri"], uri)

    def test_the_answer_of_a_check_fits_on_one_screen_of_60_80_and_100_columns_whatever_its_file_is_called(self):
        self.write("program.py", LEAK)
        long = "a folder with a long name/" + "run_of_the_whole_training_with_all_its_settings_" * 3 + ".pond"
        os.mkdir(self.path("a folder with a long name"))
        for columns in (60, 80, 100):
            for file in ("r.pond", long):
                with self.subTest(columns=columns, file=file[:10]):
                    seen, code = self.in_terminal("check", "--quiet", "--force", "--max-peak", "1MB", "-o", file, "--", "sh", "-c", 'exec "$0" program.py >/dev/null', sys.executable, columns=columns)
                    self.assertEqual(code, 1, seen)
                    lines = TITLE.sub(b"", seen).decode().splitlines()
                    self.assertLessEqual(len(lines), 24, "\n".join(lines))
                    self.assertLessEqual(max(map(len, lines)), columns, "\n".join(lines))
                    self.assertIn("millpond check: failed", lines[-1])
                    if file == long and columns == 100:
                        self.millpond("report", file)
                        seen, _ = self.in_terminal("report", file, columns=60)
                        self.assertLessEqual(max(map(len, seen.decode().splitlines())), 60)

    def check_sarif(self, found):
        """The parts of the schema of SARIF 2.1.0 that readers go by."""
        self.assertEqual(found["version"], "2.1.0")
        self.assertTrue(found["$schema"].startswith("https://"))
        self.assertEqual(len(found["runs"]), 1)
        run = found["runs"][0]
        driver = run["tool"]["driver"]
        self.assertEqual(driver["name"], "millpond")
        self.assertRegex(driver["version"], r"^\d+\.\d+\.\d+$")
        ids = [rule["id"] for rule in driver["rules"]]
        self.assertEqual(len(ids), len(set(ids)))
        for rule in driver["rules"]:
            self.assertTrue(rule["shortDescription"]["text"])
            self.assertIn(rule["defaultConfiguration"]["level"], ("none", "note", "warning", "error"))
        for invocation in run["invocations"]:
            self.assertIs(type(invocation["executionSuccessful"]), bool)
        for result in run["results"]:
            self.assertEqual(ids[result["ruleIndex"]], result["ruleId"])
            self.assertIn(result["level"], ("none", "note", "warning", "error"))
            self.assertTrue(result["message"]["text"])
            for location in result["locations"]:
                place = location["physicalLocation"]
                self.assertRegex(place["artifactLocation"]["uri"], r"^[A-Za-z0-9/._~%-]+$")
                self.assertFalse(place["artifactLocation"]["uri"].startswith("/"))
                self.assertGreaterEqual(place["region"]["startLine"], 1)


class Docs(Doctor):
    """docs/ci.md: its files are well formed, and every command in them does what it is there for."""

    def setUp(self):
        super().setUp()
        with open(os.path.join(SOURCE, "docs/ci.md")) as file:
            self.text = file.read()

    def test_every_command_on_the_page_runs(self):
        self.write("train.py", FLAT.replace("0.12", "0.03"))
        os.mkdir(self.path(".git"))
        os.mkdir(self.path("bin"))
        os.symlink(MILLPOND, self.path("bin/millpond"))
        os.symlink(sys.executable, self.path("bin/python"))
        environment = dict(os.environ, PATH=self.path("bin") + os.pathsep + os.environ["PATH"], OPTIONS="--max-peak 4GB", PROGRAM="python train.py")
        commands = re.findall(r"(?m)^(?:\$ |\s*- (?:run: )?|\s*run: |\s*entry: )(millpond .*)$", self.text)
        self.assertGreaterEqual(len(commands), 9)
        for command in commands:
            with self.subTest(command):
                if os.path.exists(self.path("memory.pond")) and "check" in command:
                    os.remove(self.path("memory.pond"))
                done = subprocess.run(["bash", "-e", "-c", command], cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
                self.assertEqual(done.returncode, 0, done.stdout)
                for name in re.findall(r"(?:-o|--sarif|--junit) (\S+)", command):
                    self.assertTrue(os.path.exists(self.path(name)), name)

    def test_its_files_are_well_formed(self):
        blocks = re.findall(r"(?s)```yaml\n(.*?)```", self.text)
        files = [plain_yaml.load(block) for block in blocks]
        try:
            import yaml
        except ImportError:
            yaml = None
        if yaml:
            # YAML 1.1 calls the key `on` true.
            self.assertEqual(files, [{"on" if key is True else key: value for key, value in read.items()} for read in map(yaml.safe_load, blocks)])
        workflow, action, gitlab, hooks = files
        self.assertTrue(all("run" in step or "uses" in step for step in workflow["jobs"]["memory"]["steps"]))
        self.assertEqual(action["runs"]["using"], "composite")
        self.assertTrue(all(step["shell"] == "bash" for step in action["runs"]["steps"]))
        self.assertEqual(gitlab["memory"]["artifacts"]["reports"]["junit"], "memory.xml")
        self.assertEqual(hooks["repos"][0]["hooks"][0]["id"], "memory")

    def test_what_its_jobs_install_is_what_the_readme_makes(self):
        with open(os.path.join(SOURCE, "README.md")) as file:
            self.assertIn("dist/millpond-*.whl", file.read())
        installs = re.findall(r"pip install (\S+)", self.text)
        self.assertEqual(set(installs), {"ci/millpond-*.whl"})
        self.assertEqual(len(installs), 3)


class Info(Doctor):
    def test_what_can_be_seen_here_is_told_to_people_and_to_machines(self):
        text = self.millpond("info").stdout
        for word in ("container", "memory", "limits", "ptrace", "/dev/shm", "python", "gpu", "gdb"):
            self.assertRegex(text, rf"(?m)^  {word}")
        found = json.loads(self.millpond("info", "--json", "-").stdout)
        for key in ("version", "system", "container", "memory", "ptrace", "shm", "pythons", "gpus", "gdb", "missing"):
            self.assertIn(key, found)
        self.assertGreater(found["memory"]["total"], found["memory"]["available"])
        room = os.statvfs("/dev/shm")
        self.assertEqual(found["shm"]["size"], room.f_blocks * room.f_frsize)

    def test_every_python_on_path_is_asked_and_what_is_missing_is_said_with_the_cure(self):
        os.mkdir(self.path("bin"))
        self.write("bin/python3", "#!/bin/sh\necho cpython 3 8 1 0 /opt/old/python3\n")
        self.write("bin/python3.13t", "#!/bin/sh\necho cpython 3 13 0 1 /bin/sh\n")
        self.write("bin/python3.99", "#!/bin/sh\necho cpython 3 99 0 0 /opt/new/python3.99\n")
        self.write("bin/python3.9", "#!/bin/sh\nexit 1\n")
        self.write("bin/python-config", "#!/bin/sh\necho no > asked\n")
        for name in os.listdir(self.path("bin")):
            os.chmod(self.path("bin/" + name), 0o755)
        found = json.loads(self.millpond("info", "--json", "-", environment={"PATH": self.path("bin")}).stdout)
        self.assertEqual([(p["path"], p["version"], p["looks_inside"]) for p in found["pythons"]],
                         [("/opt/old/python3", "3.8.1", False), ("/bin/sh", "3.13.0t", True), ("/opt/new/python3.99", "3.99.0", False)])
        self.assertEqual(found["pythons"][2]["why_not"], "newer than 3.15: its lines too if they pass a check while it runs")
        self.assertFalse(os.path.exists(self.path("asked")))
        self.assertFalse(any("no Python on PATH" in m for m in found["missing"]))
        os.remove(self.path("bin/python3.13t"))
        found = json.loads(self.millpond("info", "--json", "-", environment={"PATH": self.path("bin")}).stdout)
        self.assertTrue(any("no Python on PATH" in m for m in found["missing"]))
        self.assertIsNone(found["gdb"])
        self.assertTrue(any("gdb" in m for m in found["missing"]))

    def test_the_python_of_this_test_can_be_looked_into(self):
        folder = os.path.dirname(sys.executable)
        found = json.loads(self.millpond("info", "--json", "-", environment={"PATH": folder}).stdout)
        own = [p for p in found["pythons"] if p["version"] == "%d.%d.%d" % sys.version_info[:3]]
        self.assertTrue(own and own[0]["looks_inside"], found["pythons"])


class Bisect(Doctor):
    def test_what_was_left_out_is_listed_once_and_the_line_is_named(self):
        self.write("program.py", LEAK)
        done = self.millpond("bisect", "--only", "callbacks,validation,gc", "--", sys.executable, "program.py", code=1)
        self.assertEqual((done.stdout + done.stderr).count("no Keras in this program"), 1)
        self.assertIn("Left out: callbacks, validation (no Keras in this program).", done.stdout)
        self.assertRegex(" ".join(done.stdout.split()), r"The line is \S*program\.py:4 in keep\.")


if __name__ == "__main__":
    unittest.main()
