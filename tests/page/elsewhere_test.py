"""What `millpond report` writes for other tools, read by those tools: TensorBoard, the protobuf module of Perfetto's package, Python's csv."""
import collections
import csv
import io
import json
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

SOURCE = os.path.abspath(os.environ.get("MILLPOND_SOURCE_DIR", "."))
MILLPOND = os.path.abspath(os.environ.get("MILLPOND", os.path.join(SOURCE, "build/bin/millpond")))

try:
    import perfetto  # noqa: F401
    import tensorboard  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing} ('make peers' brings it)")
    sys.exit(77)


def run(*words, cwd):
    return subprocess.run([MILLPOND, *words], cwd=cwd, check=True, capture_output=True, text=True).stdout


class Elsewhere(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.at = cls.folder.name
        run("train", "cnn_224", "--synthetic", "--epochs", "3", "--steps-per-epoch", "1", "--run", "cnn.pond", cwd=cls.at)
        run("watch", "--quiet", "-o", "leak.pond", "--", sys.executable, os.path.join(SOURCE, "examples/leaky_training.py"), cwd=cls.at)
        run("watch", "--quiet", "-o", "family.pond", "--", sys.executable, os.path.join(SOURCE, "tests/page/programs/family.py"), cwd=cls.at)
        for name in ("cnn", "leak", "family"):
            run("report", f"{name}.pond", "--tensorboard", f"logs/{name}", "--perfetto", f"{name}.perfetto", "--csv", f"{name}.csv", cwd=cls.at)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def query(self, name, sql):
        return sqlite3.connect(os.path.join(self.at, f"{name}.pond")).execute(sql).fetchall()

    def test_tensorboard_reads_scalars_by_account_the_verdict_and_the_plan(self):
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        from tensorboard.util import tensor_util

        engine = EventAccumulator(os.path.join(self.at, "logs/cnn"), size_guidance={"scalars": 0, "tensors": 0, "images": 0}).Reload()
        tags = engine.Tags()
        self.assertIn("accounts/weights", tags["scalars"])
        (weights,) = self.query("cnn", "SELECT sum(bytes) FROM (SELECT max(series.rowid), bytes FROM series JOIN accounts ON accounts.id = account "
                                       "WHERE kind = 'current' AND name LIKE 'weights/%' GROUP BY account)")[0]
        self.assertAlmostEqual(engine.Scalars("accounts/weights")[-1].value / weights, 1, places=6)
        self.assertIn("plan/train", " ".join(tags["images"] + tags["tensors"]))
        watched = EventAccumulator(os.path.join(self.at, "logs/leak"), size_guidance={"scalars": 0, "tensors": 0}).Reload()
        rss = self.query("leak", "SELECT rss FROM os_series WHERE rss > 0 ORDER BY t")
        points = watched.Scalars("milliseconds/resident")
        self.assertEqual(len(points), len(rss))
        for point, (value,) in zip(points, rss):
            self.assertAlmostEqual(point.value / value, 1, places=6)
        self.assertEqual([p.step for p in points], sorted(p.step for p in points))
        # steps are the program's own epochs, from 0 as it prints them
        rounds = self.query("leak", "SELECT \"index\", rss FROM marks WHERE kind = 'epoch' AND period ORDER BY t")
        self.assertEqual(rounds[0][0], 0)
        points = watched.Scalars("memory/resident")
        self.assertEqual([p.step for p in points], [index for index, _ in rounds])
        for point, (_, value) in zip(points, rounds):
            self.assertAlmostEqual(point.value / value, 1, places=6)
        for account in (tag for tag in watched.Tags()["scalars"] if tag.startswith("accounts/")):
            steps = [p.step for p in watched.Scalars(account)]
            self.assertEqual(steps, sorted(set(steps)), account)
            self.assertLessEqual(steps[-1], rounds[-1][0])
        text = tensor_util.make_ndarray(watched.Tensors("verdict")[0].tensor_proto).item().decode()
        self.assertTrue(text.startswith("**leak** Memory grows by"), text)

    def test_every_process_and_all_together_are_there_in_each_of_them(self):
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        main = self.query("family", "SELECT process FROM marks WHERE kind = 'epoch' LIMIT 1")[0][0]
        start = self.query("family", f"SELECT t_start FROM processes WHERE id = {main}")[0][0]
        points = collections.defaultdict(list)
        for name, pid, t, resident in self.query("family", "SELECT p.name, pid, t, sum(resident) FROM process_series JOIN processes p ON p.id = process JOIN spaces s ON s.id = space "
                                                           "WHERE s.name IN ('host', 'shared') GROUP BY process, t ORDER BY process, t"):
            points[f"{name} {pid}"].append((t, resident))
        points = {name: rows for name, rows in points.items() if rows[-1][0] >= start}
        self.assertEqual(len(points), 3)
        together = [rss for (rss,) in self.query("family", "SELECT rss FROM tree_series WHERE rss IS NOT NULL ORDER BY t")]
        with open(os.path.join(self.at, "family.csv"), newline="") as file:
            rows = list(csv.DictReader(io.StringIO(file.read())))
        for name, told in points.items():
            self.assertEqual([int(r["bytes"]) for r in rows if r["account"] == name and r["kind"] == "process"], [v for _, v in told], name)
        self.assertEqual([int(r["bytes"]) for r in rows if r["account"] == "all processes together"], together)
        watched = EventAccumulator(os.path.join(self.at, "logs/family"), size_guidance={"scalars": 0}).Reload()
        tags = watched.Tags()["scalars"]
        for name, told in points.items():
            self.assertIn(f"processes/{name}", tags)
            self.assertAlmostEqual(watched.Scalars(f"processes/{name}")[-1].value, told[-1][1], delta=1 + 1e-6 * told[-1][1])  # one that has ended holds nothing
        self.assertAlmostEqual(watched.Scalars("memory/all processes together")[-1].value, together[-1], delta=1 + 1e-6 * together[-1])
        trace = pb.Trace()
        with open(os.path.join(self.at, "family.perfetto"), "rb") as file:
            trace.ParseFromString(file.read())
        tracks = {p.track_descriptor.name: p.track_descriptor.uuid for p in trace.packet if p.HasField("track_descriptor")}
        values = lambda name: [p.track_event.counter_value for p in trace.packet if p.HasField("track_event") and p.track_event.track_uuid == tracks[name]]
        for name, told in points.items():
            self.assertEqual(values(f"resident memory of {name}"), [v for _, v in told], name)
        self.assertEqual(values("all processes together"), together)

    def test_tensorboard_itself_serves_them(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        log = open(os.path.join(self.at, "tensorboard.log"), "w+")
        server = subprocess.Popen([sys.executable, "-m", "tensorboard.main", "--logdir", os.path.join(self.at, "logs"), "--host", "127.0.0.1", "--port", str(port),
                                   "--load_fast", "false"], stdout=log, stderr=log)
        try:
            get = lambda path: json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/data/{path}", timeout=60))
            tags = {}
            for _ in range(120):
                try:
                    tags = get("plugin/scalars/tags")
                    if set(tags) >= {"cnn", "leak"}:
                        break
                except OSError:
                    pass
                time.sleep(0.5)
            self.assertGreaterEqual(set(tags), {"cnn", "leak"})
            self.assertIn("memory/resident", tags["leak"])
            self.assertIn("verdict", get("plugin/text/tags")["leak"])
            self.assertIn("plan/train", " ".join(get("plugin/images/tags")["cnn"]))
        finally:
            server.terminate()
            server.wait()
            log.close()

    def test_perfetto_parses_the_trace_its_tracks_are_named_and_time_never_goes_back(self):
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

        for name in ("cnn", "leak"):
            trace = pb.Trace()
            with open(os.path.join(self.at, f"{name}.perfetto"), "rb") as file:
                trace.ParseFromString(file.read())
            tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")}
            events = [p for p in trace.packet if p.HasField("track_event")]
            self.assertTrue(events)
            times = [p.timestamp for p in events]
            self.assertEqual(times, sorted(times))
            for p in events:
                self.assertIn(p.track_event.track_uuid, tracks)
            self.assertTrue(all(t.name or t.process.process_name for t in tracks.values()))
            counters = {t.name: u for u, t in tracks.items() if t.HasField("counter")}
            self.assertIn("resident memory", counters)
            values = [p.track_event.counter_value for p in events if p.track_event.track_uuid == counters["resident memory"]]
            self.assertEqual(values, [rss for (rss,) in self.query(name, "SELECT rss FROM os_series WHERE rss IS NOT NULL ORDER BY t, rowid")])
            depth = {}
            for p in events:
                step = {pb.TrackEvent.TYPE_SLICE_BEGIN: 1, pb.TrackEvent.TYPE_SLICE_END: -1}.get(p.track_event.type, 0)
                depth[p.track_event.track_uuid] = depth.get(p.track_event.track_uuid, 0) + step
                self.assertIn(depth[p.track_event.track_uuid], (0, 1))
            self.assertFalse(any(depth.values()), "every slice ends")
        self.assertTrue(any(t.name == "phase epoch" for t in tracks.values()) or name == "leak")

    def test_csv_has_every_account_at_every_moment(self):
        with open(os.path.join(self.at, "cnn.csv"), newline="") as file:
            rows = list(csv.DictReader(io.StringIO(file.read())))
        moments = len(self.query("cnn", "SELECT 1 FROM os_series"))
        accounts = self.query("cnn", "SELECT count(DISTINCT account) FROM series WHERE kind = 'current' AND bytes > 0")[0][0]
        self.assertEqual(len(rows), moments * (accounts + 1))
        last = {r["account"]: int(r["bytes"]) for r in rows}
        for account, value in self.query("cnn", "SELECT name, bytes FROM series JOIN accounts ON accounts.id = account WHERE kind = 'current' GROUP BY account HAVING max(series.rowid)"):
            if value:
                self.assertEqual(last[account], value, account)


if __name__ == "__main__":
    unittest.main(verbosity=1)
