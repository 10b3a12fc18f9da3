"""Every process of the tree has an agent of its own, and the run file has its memory, rounds and walks under its own row: forked, spawned, of a server, workers of a pool
and of a DataLoader, ranks. The programs run beside each other; each child that keeps something does so by a line that is known."""
import json
import os
import sqlite3
import subprocess
import sys
import textwrap
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from support import MILLPOND, Folder, environment  # noqa: E402

DEBIAN = "/usr/bin/python3"
TORCH = os.path.exists(DEBIAN) and subprocess.run([DEBIAN, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode == 0
EACH = 400_000
POOL = """
    import multiprocessing, sys, time
    kept = []
    def work(n):
        kept.append(bytearray(400_000))
        time.sleep(0.04)
        return n
    if __name__ == "__main__":
        with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
            for epoch in range(10):
                pool.map(work, range(12), chunksize=1)
                print("epoch", epoch, flush=True)
"""
LOADER = """
    import torch, time
    from torch.utils.data import DataLoader, Dataset
    class Data(Dataset):
        def __init__(self):
            self.seen = []
        def __len__(self):
            return 24
        def __getitem__(self, index):
            time.sleep(0.01)
            self.seen.append(torch.ones(100_000))
            return torch.zeros(10)
    if __name__ == "__main__":
        loader = DataLoader(Data(), batch_size=4, num_workers=2, persistent_workers=True, multiprocessing_context="fork")
        for epoch in range(20):
            for batch in loader:
                pass
            print("epoch", epoch, flush=True)
"""
RANKS = """
    import multiprocessing, time
    def train(rank):
        history = []
        for epoch in range(40):
            batch = bytearray(400_000)
            if rank == 2:
                history.append(batch)
            time.sleep(0.08)
            print("epoch", epoch, "of rank", rank, flush=True)
    if __name__ == "__main__":
        ranks = [multiprocessing.get_context("fork").Process(target=train, args=(rank,), name="rank-%d" % rank) for rank in range(4)]
        [rank.start() for rank in ranks]
        [rank.join() for rank in ranks]
"""
SERVER = """
    import os, signal, socket, time
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(16)
    child = os.fork()
    if child == 0:
        sessions = {}
        while True:
            connection, _ = listening.accept()
            connection.recv(10)
            sessions[len(sessions)] = b"x" * 400_000
            connection.sendall(b"ok")
            connection.close()
    for request in range(80):
        connection = socket.create_connection(listening.getsockname())
        connection.sendall(b"x")
        connection.recv(2)
        connection.close()
        time.sleep(0.04)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""
COPIES = """
    import os, time
    inherited = bytearray(b"x" * 60_000_000)
    child = os.fork()
    if child == 0:
        for n in range(40):
            for at in range(n * 1_500_000, (n + 1) * 1_500_000, 4096):
                inherited[at] = 1
            junk = [str(i) for i in range(2000)]
            time.sleep(0.08)
        os._exit(0)
    os.waitpid(child, 0)
"""
SHORT = """
    import os, time
    for n in range(30):
        child = os.fork()
        if child == 0:
            kept = [bytes(40_000) for _ in range(40)]
            os._exit(3)
        assert os.waitpid(child, 0)[1] == 3 << 8
        time.sleep(0.05)
"""
SHARED = """
    import mmap, os, time
    from multiprocessing import shared_memory
    kept, maps, names = [], [], []
    try:
        with open("data.bin", "wb") as file:
            file.write(bytes(40_000_000))
        mapped = mmap.mmap(os.open("data.bin", os.O_RDONLY), 0, prot=mmap.PROT_READ)
        for n in range(20):
            kept.append(shared_memory.SharedMemory(create=True, size=1_000_000))
            kept[-1].buf[:] = bytes(1_000_000)
            maps.append(mmap.mmap(-1, 500_000))
            maps[-1].write(bytes(500_000))
            sum(mapped[n * 2_000_000:(n + 1) * 2_000_000:4096])
            names.append("/dev/shm/millpond-test-%d-%d" % (os.getpid(), n))
            with open(names[-1], "wb") as file:
                file.write(bytes(300_000))
            time.sleep(0.15)
    finally:
        for block in kept:
            block.close(), block.unlink()
        for name in names:
            os.unlink(name)
"""


def line_of(program, words):
    return next(number for number, line in enumerate(textwrap.dedent(program).splitlines(), 1) if words in line)


class Run:
    """A program under watch; what its run file says once it has ended."""

    def __init__(self, folder, name, program, python=sys.executable, arguments=()):
        self.path = os.path.join(folder, name + ".pond")
        source = os.path.join(folder, name + ".py")
        with open(source, "w") as file:
            file.write(textwrap.dedent(program))
        self.watch = subprocess.Popen([MILLPOND, "watch", "-o", self.path, "--", python, source, *arguments], cwd=folder, env=environment(), stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT)

    def done(self):
        said = self.watch.communicate(timeout=120)[0].decode()
        if self.watch.returncode:
            raise AssertionError("exit code %d\n%s" % (self.watch.returncode, said))
        self.db = sqlite3.connect("file:%s?mode=ro" % self.path, uri=True)
        return self

    def rows(self, text, *values):
        return self.db.execute(text, values).fetchall()

    def children(self, how):
        return [row[0] for row in self.rows("SELECT process FROM process_details WHERE how = ? ORDER BY process", how)]

    def labels(self):
        return dict(self.rows("SELECT label, process FROM process_details WHERE label IS NOT NULL"))

    def notes(self, process, kind):
        notes = [json.loads(text) for (text,) in self.rows("SELECT text FROM notes WHERE process = ? ORDER BY t", process)]
        return [note for note in notes if note["note"] == kind]

    def series(self, process, column="anonymous"):
        return [value for (value,) in self.rows("SELECT %s FROM process_memory WHERE process = ? AND %s IS NOT NULL ORDER BY t" % (column, column), process)]

    def mapped(self, kind, column="resident"):
        return [value for (value,) in self.rows("SELECT %s FROM mapping_series WHERE kind = ? ORDER BY t" % column, kind)]


class Children(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Folder()
        cls.runs = {}
        start = [(method, POOL, sys.executable, [method]) for method in ("fork", "forkserver", "spawn")]
        start += [("ranks", RANKS, sys.executable, []), ("server", SERVER, sys.executable, []), ("copies", COPIES, sys.executable, []), ("short", SHORT, sys.executable, []),
                  ("shared", SHARED, sys.executable, [])]
        if TORCH:
            start.append(("loader", LOADER, DEBIAN, []))
        for first in range(0, len(start), 3):  # they wait most of the time
            batch = start[first:first + 3]
            for name, program, python, arguments in batch:
                cls.runs[name] = Run(cls.folder.name, name, program, python, arguments)
            for name, *_ in batch:
                cls.runs[name].done()

    @classmethod
    def tearDownClass(cls):
        for run in cls.runs.values():
            run.db.close()
        cls.folder.cleanup()

    def check_leak(self, run, process, holder, program, words, least):
        """The last walk of the process names the holder and the line that made what it keeps; the process has a rising series of its own."""
        walks = [walk for walk in run.notes(process, "walk") if walk.get("holders")]
        self.assertTrue(walks, run.notes(process, "walk"))
        first = walks[-1]["holders"][0]
        self.assertEqual(first["chain"][0], holder)
        self.assertIn(line_of(program, words), [place["line"] for place in first["born"]])
        self.assertGreater(first["bytes"], least)
        self.assertGreater(sum(bytes_ > 0 for bytes_ in first["births"]), 5)
        series = run.series(process)
        self.assertGreaterEqual(len(series), 10)
        self.assertGreater(series[-1] - series[0], 2 * least)
        quarters = [series[len(series) * part // 4] for part in range(4)] + [series[-1]]
        self.assertEqual(quarters, sorted(quarters))

    def test_a_worker_of_a_pool_has_its_rounds_its_holder_and_its_series_however_it_was_started(self):
        for method, how, module in (("fork", "fork", "__main__"), ("forkserver", "fork", "__mp_main__"), ("spawn", "spawn", "__mp_main__")):
            with self.subTest(method):
                run = self.runs[method]
                workers = {label: process for label, process in run.labels().items() if "PoolWorker-" in label}
                self.assertEqual(len(workers), 2, run.labels())
                for label, process in workers.items():
                    self.check_leak(run, process, "global kept of " + module, POOL, "kept.append", 10 * EACH)
                    self.assertIn(process, run.children(how))
                    self.assertGreater(run.rows("SELECT count(*) FROM marks WHERE process = ? AND kind = 'task' AND period = 1", process)[0][0], 20)
                    self.assertIn("kept", [row["holder"] for row in run.notes(process, "holders")[-1]["containers"]])

    def test_a_worker_of_a_data_loader_knows_its_epochs(self):
        if not TORCH:
            self.skipTest("no torch for " + DEBIAN)
        run = self.runs["loader"]
        workers = [process for label, process in run.labels().items() if "Process-" in label]  # "ForkProcess-1" where the way is said
        self.assertEqual(len(workers), 2, run.labels())
        for process in workers:
            self.check_leak(run, process, "attribute seen of Data", LOADER, "self.seen.append", 10 * EACH)
            self.assertEqual(run.rows("SELECT max(\"index\") FROM marks WHERE process = ? AND kind = 'loader'", process), [(20,)])
            self.assertEqual(list(run.notes(process, "start")[0]["rounds"].values()), [1])  # of the parent, when it was forked

    def test_one_of_four_ranks_keeps_and_the_others_do_not(self):
        run = self.runs["ranks"]
        ranks = run.labels()
        self.assertEqual(sorted(ranks), ["rank-0", "rank-1", "rank-2", "rank-3"])
        self.check_leak(run, ranks["rank-2"], "local history of train", RANKS, "batch = ", 10 * EACH)
        for label in ("rank-0", "rank-1", "rank-3"):
            walk = run.notes(ranks[label], "walk")[-1]
            self.assertLess(sum(holder["bytes"] for holder in walk["holders"]), 3 * EACH, label)
            series = run.series(ranks[label])
            self.assertGreaterEqual(len(series), 10)
            self.assertLess(series[-1] - series[len(series) // 2], 5 * EACH)
            self.assertGreater(run.rows("SELECT count(*) FROM marks WHERE process = ? AND kind = 'epoch'", ranks[label])[0][0], 20)

    def test_what_a_child_of_a_server_said_is_there_after_it_was_killed(self):
        run = self.runs["server"]
        child, = run.children("fork")
        self.check_leak(run, child, "global sessions of __main__", SERVER, "sessions[len(sessions)]", 10 * EACH)
        self.assertGreater(run.rows("SELECT max(\"index\") FROM marks WHERE process = ? AND kind = 'request'", child)[0][0], 60)
        self.assertEqual(run.notes(child, "end"), [])

    def test_pages_that_are_written_become_private_while_the_child_takes_nothing(self):
        run = self.runs["copies"]
        child, = run.children("fork")
        inherited = run.rows("SELECT inherited FROM process_details WHERE process = ?", child)[0][0]
        self.assertGreater(inherited, 60_000_000)
        private, anonymous, alive = (run.series(child, column) for column in ("private", "anonymous", "alive"))
        self.assertGreater(len(private), 5)
        self.assertGreater(private[-1] - private[0], 30_000_000)
        self.assertLess(anonymous[-1] - anonymous[0], 8_000_000)
        self.assertLess(alive[-1] - alive[0], 8_000_000)

    def test_the_tree_counts_a_page_once_however_many_processes_have_it(self):
        run = self.runs["copies"]
        both = run.rows("SELECT pss, rss FROM tree_series WHERE pss IS NOT NULL AND processes = 2 ORDER BY t")
        self.assertGreater(len(both), 5)
        pss, rss = both[0]
        self.assertLess(pss, rss - 30_000_000)
        self.assertGreater(both[-1][0] - pss, 20_000_000)  # each page that was copied is there twice

    def test_children_that_live_for_a_moment_say_nothing(self):
        run = self.runs["short"]
        self.assertEqual([note for process in run.children("fork") for note in run.notes(process, "start")], [])

    def test_shared_memory_mapped_files_and_files_in_shared_memory_are_series(self):
        run = self.runs["shared"]
        for kind, least in (("shared_memory", 8_000_000), ("shared_anonymous", 4_000_000), ("file", 16_000_000), ("tmpfs", 10_000_000)):
            with self.subTest(kind):
                values = run.mapped(kind)
                self.assertGreater(len(values), 1)
                self.assertGreater(max(values) - values[0], least)
        self.assertGreater(max(run.mapped("tmpfs", "private")), 2_000_000)  # what nobody has mapped
        self.assertLess(max(run.mapped("tmpfs", "private")), 8_000_000)


if __name__ == "__main__":
    unittest.main()
