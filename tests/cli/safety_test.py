"""What a run file holds, who may read it, and what a stranger's can do: nothing that it names is opened, nothing that it says is run, and memory is bounded."""
import base64
import ctypes
import json
import os
import re
import resource
import shutil
import socket
import sqlite3
import stat
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request
import zlib

from doctor_test import LEAK, MILLPOND, Doctor
from program import SANITIZED

TALKER = """\
import os, sys, time
kept = []
class Failure(Exception):
    pass
def keep(size):
    kept.append(b"x" * size)
for epoch in range(1, 13):
    keep(4_000_000)
    time.sleep(0.05)
    print("epoch", epoch, "wombat", flush=True)
    print(f"quokka {epoch}", flush=True)
raise Failure("postgres://user:" + "PASS" + "WORD@db")
"""
WORKERS = """\
import multiprocessing, sys, time
def work(n):
    kept = [b"x" * 3_000_000 * (n + 1)]
    time.sleep(2)
if __name__ == "__main__":
    fork = multiprocessing.get_context("fork")  # since 3.14 they would be children of a server
    workers = [fork.Process(target=work, args=(n,)) for n in range(3)]
    for w in workers: w.start()
    for w in workers: w.join()
"""


def page_of(path):
    """The document in a page, and the page without it."""
    with open(path) as file:
        page = file.read()
    data = max(re.findall(r"[A-Za-z0-9+/=]{200,}", page), key=len)
    for found in sorted(re.findall(r"[A-Za-z0-9+/=]{200,}", page), key=len, reverse=True):
        try:
            return json.loads(zlib.decompress(base64.b64decode(found))), page.replace(found, "")
        except Exception:
            continue
    raise AssertionError("no document in " + data[:40])


class Opened:
    """Tells whether anybody opened a file, as the kernel saw it (inotify)."""
    kOpen, kAccess = 0x20, 0x1

    def __init__(self, path):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert self.libc.inotify_add_watch(self.fd, path.encode(), self.kOpen | self.kAccess) >= 0

    def times(self):
        try:
            return len(os.read(self.fd, 65536)) // struct.calcsize("iIII")
        except BlockingIOError:
            return 0

    def close(self):
        os.close(self.fd)


class Recorded(Doctor):
    def query(self, sql, name="run.pond"):
        db = sqlite3.connect(self.path(name))
        try:
            return db.execute(sql).fetchall()
        finally:
            db.close()

    def change(self, *statements, name="run.pond"):
        db = sqlite3.connect(self.path(name))
        db.create_function("deep", 0, lambda: '{"note": ' + "[" * 30000 + "]" * 30000 + "}")
        for sql in statements:
            db.executescript(sql) if ";" in sql else db.execute(sql)
        db.commit()
        db.close()

    def bytes_of(self, name="run.pond"):
        with open(self.path(name), "rb") as file:
            return file.read()


class Holds(Recorded):
    def test_no_printed_word_no_text_of_an_exception_and_nothing_of_the_environment_is_in_a_run_file_and_it_is_its_owners_alone(self):
        self.watched(TALKER, "-o", "run.pond", code=1, environment={"API_KEY": "bandicoot"})
        found = self.bytes_of()
        for word in (b"PASSWORD", b"bandicoot", b"epoch #", b"# wombat"):
            self.assertFalse(word in found, word)
        # The source says these words, and it is stored; without it they are nowhere.
        os.remove(self.path("run.pond"))
        before = os.umask(0)
        self.addCleanup(os.umask, before)
        self.watched(TALKER, "-o", "run.pond", "--no-source", "--no-arguments", code=1, arguments=("--token", "numbat"))
        found = self.bytes_of()
        for word in (b"wombat", b"quokka", b"PASSWORD", b"numbat", b"kept.append"):
            self.assertFalse(word in found, word)
        self.assertTrue(b"Failure" in found)
        self.assertEqual(stat.S_IMODE(os.stat(self.path("run.pond")).st_mode), 0o600)
        self.assertEqual(self.query("SELECT count(*) FROM sources"), [(0,)])
        self.assertEqual(self.query("SELECT count(*) FROM processes WHERE command IS NOT NULL"), [(0,)])

    def test_source_is_stored_when_recorded_so_that_a_report_needs_no_file(self):
        found, _ = self.watched(LEAK, "-o", "run.pond")
        os.rename(self.path("program.py"), self.path("elsewhere.py"))
        shown = self.millpond("report", "run.pond", "--lines").stdout
        self.assertIn('kept.append(b"x" * size)', shown)
        self.millpond("report", "run.pond", "-o", "page.html")
        document, _ = page_of(self.path("page.html"))
        source = document["runs"][0]["findings"][0]["blame"]["source"]
        self.assertEqual(source["lines"][0], "def keep(size):")
        sources = self.query("SELECT file, function, first, text FROM sources")
        keep = [row for row in sources if row[1] == "keep"]
        self.assertEqual(keep[0][2:], (3, 'def keep(size):\n    kept.append(b"x" * size)\n'))
        self.assertLessEqual(sum(len(row[3]) for row in sources), 65536)
        self.assertEqual(found["findings"][0]["space"], "host")
        self.assertTrue(found["findings"][0]["chain"])

    def test_every_process_has_a_row_from_start_to_end_and_a_series_of_each_space(self):
        found, _ = self.watched(WORKERS, "-o", "run.pond")
        rows = self.query("SELECT id, pid, parent, t_start, t_end, seen, command FROM processes WHERE id IN (SELECT process FROM process_series)")
        root = rows[0]
        workers = [row for row in rows if row[2] == root[1] and "resource_tracker" not in (row[6] or "")]
        self.assertEqual(len(workers), 3, rows)
        for row in rows:
            self.assertIsNotNone(row[4], row)
            self.assertGreaterEqual(row[4], row[3])
            self.assertEqual(row[5], "inside")
        most = {process: most for process, most in self.query(
            "SELECT process, max(resident) FROM process_series JOIN spaces s ON s.id = space AND s.name = 'host' GROUP BY process")}
        sizes = sorted(most[row[0]] for row in workers)
        self.assertGreater(sizes[2] - sizes[0], 4_000_000, sizes)
        self.assertEqual(len([p for p in found["processes"] if p["process"] in {row[0] for row in workers}]), 3)

    def test_an_old_run_file_is_read_as_ever_and_left_alone(self):
        seeds = os.path.join(os.environ.get("MILLPOND_SOURCE_DIR", "."), "fuzz/seeds/run_file")
        shutil.copy(os.path.join(seeds, "watched_v1.db"), self.path("old.pond"))
        before = self.bytes_of("old.pond")
        self.assertEqual(json.loads(self.millpond("report", "old.pond", "--json", "-").stdout)["verdict"], "leak")
        self.millpond("report", "old.pond", "-o", "page.html", "--csv", "x.csv")
        self.millpond("report", "old.pond", "--share", "new.pond")
        self.assertTrue(self.bytes_of("old.pond") == before)
        self.assertEqual(json.loads(self.millpond("report", "new.pond", "--json", "-").stdout)["verdict"], "leak")


class Share(Recorded):
    def test_no_home_no_user_no_host_is_in_the_bytes_and_the_answer_is_the_same(self):
        home = self.path("home/zaphodbeeble")
        project = os.path.join(home, "my project")
        os.makedirs(project)
        with open(os.path.join(project, "train.py"), "w") as file:
            file.write(LEAK)
        environment = dict(os.environ, NO_COLOR="1", HOME=home, USER="zaphodbeeble")
        def run(*words):
            done = subprocess.run([MILLPOND, *words], cwd=project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout
        run("watch", "--quiet", "-o", "run.pond", "--", sys.executable, os.path.join(project, "train.py"), "--data", os.path.join(home, "towel.csv"))
        self.assertIn("without paths", run("report", "run.pond", "--share", "public.pond"))
        with open(os.path.join(project, "run.pond"), "rb") as file:
            self.assertTrue(b"zaphodbeeble" in file.read())
        with open(os.path.join(project, "public.pond"), "rb") as file:
            shared = file.read()
        host = [socket.gethostname()] if len(socket.gethostname()) > 5 else []  # a shorter one is in most files by chance
        for word in (home, "zaphodbeeble", self.folder, "my project", *host):
            self.assertFalse(word.encode() in shared, word)
        before, after = (json.loads(run("report", name, "--json", "-")) for name in ("run.pond", "public.pond"))
        for key in ("verdict", "peak_rss", "seconds", "dropped_events", "phases"):
            self.assertEqual(before[key], after[key])
        one, two = before["findings"][0], after["findings"][0]
        for key in ("cause", "bytes_per_unit", "total_bytes", "holder"):
            self.assertEqual(one[key], two[key])
        self.assertEqual((two["blame"]["file"], two["blame"]["line"]), ("train.py", 4))
        self.assertEqual(stat.S_IMODE(os.stat(os.path.join(project, "public.pond")).st_mode), 0o600)
        # What is made beside it is of the copy too, the page as well as tables and the JSON.
        run("report", "run.pond", "--share", "again.pond", "-o", "page.html", "--csv", "table.csv", "--json", "all.json", "--perfetto", "run.perfetto", "--collapsed", "stacks.txt")
        with open(os.path.join(project, "page.html")) as file:
            packed = re.search('<script id="data"[^>]*>([^<]+)</script>', file.read()).group(1)
        shown = zlib.decompress(base64.b64decode(packed))
        self.assertIn(b"train.py", shown)
        written = [shown]
        for name in ("page.html", "table.csv", "all.json", "run.perfetto", "stacks.txt"):
            with open(os.path.join(project, name), "rb") as file:
                written.append(file.read())
        for content in written:
            for word in (home, "zaphodbeeble", self.folder, "my project", *host):
                self.assertFalse(word.encode() in content, word)


class Bisect(Recorded):
    WRITER = """\
        import os, time
        kept = []
        with open("checkpoint.bin", "ab") as file:
            file.write(b"more")
        os.makedirs("made", exist_ok=True)
        for epoch in range(1, 9):
            kept.append(b"x" * 8_000_000)
            time.sleep(0.1)
            print("epoch", epoch, flush=True)
        """

    def bisect(self, *options, code=1):
        self.write("program.py", self.WRITER)
        self.write("checkpoint.bin", "precious")
        return self.millpond("bisect", "--only", "gc", "--seconds", 3, *options, "--", sys.executable, "program.py", code=code)

    def test_runs_are_in_copies_and_the_folder_stays_as_it_is(self):
        os.mkdir(self.path(".venv"))
        done = self.bisect()
        self.assertEqual(self.bytes_of("checkpoint.bin"), b"precious")
        self.assertEqual(sorted(os.listdir(self.folder)), [".venv", "checkpoint.bin", "program.py"])
        said = [line for line in done.stderr.splitlines() if "copy of this folder" in line]
        self.assertEqual(len(said), 1)
        self.assertIn("absolute paths", said[0])
        self.assertIn(".venv", said[0])

    def test_in_place_is_what_it_says(self):
        done = self.bisect("--in-place")
        self.assertEqual(self.bytes_of("checkpoint.bin"), b"precious" + b"more" * 2)
        self.assertIn("--in-place", done.stderr)

    def test_a_folder_that_is_too_large_is_refused_with_its_size_before_anything_runs(self):
        with open(self.path("large.bin"), "wb") as file:
            file.truncate(3 << 30)
        done = self.bisect()
        self.assertIn("3.00 GiB", done.stderr)
        self.assertIn("--in-place", done.stderr)
        self.assertEqual(self.bytes_of("checkpoint.bin"), b"precious")


class Stranger(Recorded):
    """Run files that somebody made."""
    TEXTS = {"meta": ["value"], "accounts": ["name"], "phases": ["kind", "name"], "processes": ["name", "command"], "frames": ["file", "function"], "marks": ["kind", "name"],
             "notes": ["text"], "sources": ["file", "function", "text"], "gpus": ["name"]}

    @classmethod
    def setUpClass(cls):
        cls.made = Recorded("setUp")
        cls.made.setUp()
        cls.made.watched(LEAK, "-o", "run.pond")

    @classmethod
    def tearDownClass(cls):
        cls.made.doCleanups()

    def setUp(self):
        super().setUp()
        shutil.copy(self.made.path("run.pond"), self.path("run.pond"))

    APART = ([], ["--lines", "--table", "--tree", "--json", "-"], ["-o", "page.html", "--csv", "x.csv", "--perfetto", "x.perfetto", "--tensorboard", "logs"],
             ["--collapsed", "x.collapsed", "--speedscope", "x.speedscope", "--pprof", "x.pb"], ["--growth", "--collapsed", "-"], ["--share", "shared.pond"])
    AT_ONCE = ([], ["--lines", "--table", "--tree", "--json", "-", "-o", "page.html", "--csv", "x.csv", "--perfetto", "x.perfetto", "--tensorboard", "logs", "--speedscope", "x.speedscope"],
               ["--share", "shared.pond"])

    def everything(self, code=0, forms=APART):
        """Every form of a report; all that was written, as one text."""
        name = "run.pond"
        for old in ("shared.pond", "page.html", "two.html"):
            if os.path.exists(self.path(old)):
                os.remove(self.path(old))
        def bounded():
            resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
            resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        more = {} if SANITIZED else {"preexec_fn": bounded}
        said = ""
        for options in forms:
            done = self.millpond("report", name, *options, code=None, **more)
            self.assertIn(done.returncode, (0, 1, 2), (options, done.stderr[-500:]))
            if code is not None and options != ["--growth", "--collapsed", "-"]:
                self.assertEqual(done.returncode, code, (options, done.stderr[-500:]))
            if done.returncode:
                self.assertTrue(done.stderr.startswith("millpond: "), done.stderr)
            said += done.stdout + done.stderr
        if forms is self.APART:
            done = self.millpond("report", name, self.made.path("run.pond"), "-o", "two.html", code=None, **more)
            said += done.stdout + done.stderr
        done = self.millpond("fix", name, code=None, **more)
        self.assertIn(done.returncode, (0, 1, 2), done.stderr[-500:])
        said += done.stdout + done.stderr
        for folder, _, files in os.walk(self.folder):
            for file in files:
                if not file.endswith(".pond"):
                    with open(os.path.join(folder, file), "rb") as content:
                        said += content.read().decode("latin-1")
        for page in ("page.html", "two.html"):
            if os.path.exists(self.path(page)):
                said += json.dumps(page_of(self.path(page))[0])
        return said

    def test_no_file_that_a_run_file_names_is_opened_by_any_reader(self):
        elsewhere = tempfile.mkdtemp(prefix="millpond-canary-")
        self.addCleanup(shutil.rmtree, elsewhere)
        canary = os.path.join(elsewhere, "credentials")
        with open(canary, "w") as file:
            file.write("".join(f"aws_secret_access_key = CANARY{n}\n" for n in range(60)))
        quoted = canary.replace("'", "''")
        for sources in ("", "; DELETE FROM sources"):
            self.change(f"UPDATE frames SET file = '{quoted}', line = 4; UPDATE notes SET text = replace(text, '{self.made.path('program.py')}', '{quoted}');"
                        f"UPDATE notes SET text = replace(text, '\"text\":', '\"was\":'); UPDATE meta SET value = '{quoted}' WHERE key IN ('command', 'remarks');"
                        f"UPDATE sources SET file = '{quoted}'; UPDATE processes SET name = '{quoted}', command = '{quoted}'" + sources)
            opened = Opened(canary)
            said = self.everything()
            said += self.live()
            times = opened.times()
            opened.close()
            self.assertTrue("credentials" in said)
            self.assertFalse("CANARY" in said)
            self.assertEqual(times, 0, "the file was opened")

    def live(self):
        process = subprocess.Popen([MILLPOND, "live", "run.pond"], cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            address = re.search(r"http://\S+", process.stderr.readline()).group(0)
            for _ in range(100):
                try:
                    with urllib.request.urlopen(address + "data", timeout=10) as answer:
                        return zlib.decompress(answer.read()).decode()
                except urllib.error.HTTPError:
                    time.sleep(0.1)
            raise AssertionError("the live page has no document")
        finally:
            process.stdin.close()
            process.wait(20)
            process.stdout.close()
            process.stderr.close()

    def test_scripts_in_every_text_are_text(self):
        script = "</script><script>alert(31337)</script><img src=x onerror=alert(31337)>\x1b]0;owned\x07\x1b[31m"
        for table, columns in self.TEXTS.items():
            for column in columns:
                if (table, column) not in (("meta", "value"), ("marks", "kind"), ("notes", "text"), ("accounts", "name")):
                    self.change(f"UPDATE {table} SET {column} = '{script}'")
        self.change(f"UPDATE meta SET value = '{script}' WHERE key IN ('command', 'remarks', 'limit.name', 'host.cpu', 'started')")
        self.change("UPDATE notes SET text = replace(text, 'kept.append', '" + script.replace("\x1b", "").replace("\x07", "") + "')")
        shown = self.millpond("report", "run.pond").stdout + self.millpond("report", "run.pond", "--lines", "--table", "--tree").stdout
        self.assertNotIn("\x1b", shown)
        self.assertNotIn("\x07", shown)
        self.millpond("report", "run.pond", "-o", "page.html")
        document, page = page_of(self.path("page.html"))
        self.assertTrue("alert(31337)" in json.dumps(document))
        self.assertFalse("<script>alert" in page)
        self.assertFalse("<img src=x" in page)
        self.everything()

    MANY = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "

    def test_what_no_run_can_hold_is_refused_with_a_sentence(self):
        for name, statement, says in (
                ("negative sizes", "UPDATE site_states SET bytes = -5", "must be 0 or more"),
                ("negative resident", "UPDATE process_series SET resident = -5", "must be 0 or more"),
                ("wrong types", "UPDATE marks SET rss = 'many'", "must be an integer"),
                ("a blob for a text", "UPDATE frames SET file = x'ff00ff'", "must be a text"),
                ("a huge blob", "UPDATE notes SET text = zeroblob(50000000) WHERE rowid = 1", "too big"),
                ("a huge text", "INSERT INTO meta VALUES ('x', printf('%.*c', 50000000, 'x'))", "too big"),
                ("a view", "DROP TABLE frames; CREATE VIEW frames AS SELECT 1 id, readfile('/etc/passwd') file, '' function, 1 line, 0 native, 1 user", "computes with its rows"),
                ("a trigger", "CREATE TRIGGER t AFTER INSERT ON meta BEGIN DELETE FROM meta; END", "computes with its rows"),
                ("a virtual table", "DROP TABLE sources; CREATE VIRTUAL TABLE sources USING fts5(id, file, function, first, text)", "has no table sources"),
                ("absurd counts", "UPDATE marks SET \"index\" = 9223372036854775807", "within 2^53"),
                ("absurd amounts", "UPDATE marks SET rss = 9223372036854775807", "together with the others"),
                ("absurd times", "UPDATE marks SET t = 1e300", "within 1e"),
                ("too many rows", self.MANY % 250000 + "INSERT INTO marks SELECT i + 100000, 1, 1.0, 'epoch', 'fit', i, 1, 1, 1, 1, 1, 1, NULL, NULL, 1, '1' FROM n", "at most 200000 are read"),
                ("too much text", self.MANY % 1500 + "INSERT INTO notes SELECT 1.0, 1, printf('%.*c', 60000, 'x') FROM n", "below 64 MiB"),
                ("frames that are not there", "UPDATE sites SET frames = '99999999'", None),
                ("too many frames", "UPDATE sites SET frames = printf('%.*c', 2000, '1') || ' 1'", "numbers are expected"),
                ("an unknown space", "UPDATE process_series SET space = 4711", "memory space 4711"),
                ("a way to be seen that is none", "UPDATE processes SET seen = 'x'", "was seen"),
                ("a newer version", "PRAGMA user_version = 99", "schema version 99")):
            with self.subTest(name):
                shutil.copy(self.made.path("run.pond"), self.path("run.pond"))
                self.change(statement)
                said = self.everything(1 if says else None, self.AT_ONCE)
                if says:
                    self.assertTrue(says in said, said[:500])

    def test_cycles_depth_and_absurd_numbers_end_in_a_report_with_bounded_memory(self):
        for name, statement in (
                ("parents in a circle", "UPDATE phases SET parent = id; UPDATE processes SET parent = pid"),
                ("processes of each other", "UPDATE processes SET parent = (SELECT max(pid) FROM processes), pid = 7"),
                ("a stack of one frame, 256 times", "UPDATE sites SET frames = trim(replace(printf('%.*c', 256, 'x'), 'x', '1 '))"),
                ("notes as deep as they get", "UPDATE notes SET text = deep()"),
                ("notes of strange kinds", "UPDATE notes SET text = replace(replace(text, '[', '{\"x\":'), ']', '}')"),
                ("lines before the first and after the last", "UPDATE frames SET line = -1 WHERE id % 2; UPDATE frames SET line = 4294967296 WHERE id % 2 = 0"),
                ("sources of absurd lines", "UPDATE sources SET first = 9007199254740991"),
                ("sources of one place a thousand times", self.MANY % 1000 + "INSERT INTO sources SELECT i + 1000, 'p', 'f', 1, printf('%.*c', 50, char(10)) FROM n"),
                ("times that run backwards", "UPDATE marks SET t = -t; UPDATE os_series SET t = -t; UPDATE process_series SET t = 5"),
                ("a process that ends before it starts", "UPDATE processes SET t_start = 100, t_end = -100"),
                ("meta that counts on being believed", "UPDATE meta SET value = '1e308' WHERE key LIKE 'peak%' OR key LIKE 'limit%' OR key LIKE 'sampling%' OR key = 'seconds'"),
                ("no process at all", "DELETE FROM processes"),
                ("names without end", "UPDATE frames SET function = printf('%.*c', 60000, 'x') WHERE id = 1"),
                ("two hundred thousand points", self.MANY % 200000 + "INSERT INTO process_series SELECT i, 1, 1, i, i, i FROM n")):
            with self.subTest(name):
                shutil.copy(self.made.path("run.pond"), self.path("run.pond"))
                self.change(statement)
                self.everything(None, self.AT_ONCE)

    def test_a_report_leaves_file_and_folder_as_they_are(self):
        before, facts = self.bytes_of(), os.stat(self.path("run.pond"))
        os.chmod(self.path("run.pond"), 0o400)
        self.millpond("report", "run.pond")
        self.assertTrue(self.bytes_of() == before)
        self.assertEqual(os.stat(self.path("run.pond")).st_mtime_ns, facts.st_mtime_ns)
        self.assertEqual(os.listdir(self.folder), ["run.pond"])


if __name__ == "__main__":
    unittest.main()
