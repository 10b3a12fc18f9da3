"""Every number of a page against the run file it was made of: the page's document and the database are read here by another reader than ours, each on its own,
and what they say is compared field by field, with what it means. Amounts that belong together must add up."""
import base64
import collections
import json
import math
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import unittest
import zlib

from recorded import rebuilt

SOURCE = os.path.abspath(os.environ.get("MILLPOND_SOURCE_DIR", "."))
MILLPOND = os.path.abspath(os.environ.get("MILLPOND", os.path.join(SOURCE, "build/bin/millpond")))
HERE = os.path.join(SOURCE, "tests/page/programs")
WATCHED = {
    "leak": [sys.executable, os.path.join(SOURCE, "examples/leaky_training.py")],
    "family": [sys.executable, os.path.join(HERE, "family.py")],
    "silent": [sys.executable, os.path.join(HERE, "silent.py")],
    "worker": [sys.executable, os.path.join(HERE, "worker.py")],
}
RECORDED = {"gpu": "gpu_two_processes.json", "device": "gpu_kept_hidden.json"}  # on a machine that has a GPU


def column(differences):
    """A column of the document as it was: sums of the differences; None was not measured."""
    out, last = [], 0
    for d in differences:
        if d is None:
            out.append(None)
        else:
            last += d
            out.append(last)
    return out


def ms(seconds):
    return int(seconds * 1000 + 0.5)


class Run:
    def __init__(self, folder, name):
        self.name = name
        self.page = os.path.join(folder, f"{name}.html")
        subprocess.run([MILLPOND, "report", f"{name}.pond", "-o", self.page], cwd=folder, check=True, capture_output=True)
        with open(self.page) as file:
            html = file.read()
        packed = re.search(r'<script id="data"[^>]*>([^<]+)</script>', html).group(1)
        document = json.loads(zlib.decompress(base64.b64decode(packed)))
        assert document["format"] == 2 and len(document["runs"]) == 1
        self.d = document["runs"][0]
        self.db = sqlite3.connect(os.path.join(folder, f"{name}.pond"))
        self.meta = dict(self.q("SELECT key, value FROM meta"))
        self.json = json.loads(subprocess.run([MILLPOND, "report", f"{name}.pond", "--json", "-"], cwd=folder, check=True, capture_output=True, text=True).stdout)

    def q(self, sql, *values):
        return self.db.execute(sql, values).fetchall()

    def names(self, ids):
        return [self.d["strings"][i] for i in column(ids)]

    def main(self):
        """The process whose story is told: the one with most marks of its own."""
        return self.q("SELECT process FROM marks WHERE period GROUP BY process ORDER BY sum(CASE kind WHEN 'timer' THEN 1 ELSE 1000 END) DESC, process LIMIT 1")[0][0]

    def frames(self):
        return {i: rest for i, *rest in self.q("SELECT id, file, function, line, native, user FROM frames")}


def of(*names):
    """The test for each of these runs; of none named, for all."""

    def wrap(test):
        def run(self):
            for name in names or self.runs:
                with self.subTest(run=name):
                    test(self, self.runs[name])

        run.__name__ = test.__name__
        return run

    return wrap


class Numbers(unittest.TestCase):
    maxDiff = 2000

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        at = cls.folder.name
        for name, command in WATCHED.items():
            subprocess.run([MILLPOND, "watch", "--quiet", "-o", f"{name}.pond", "--", *command], cwd=at, check=True, capture_output=True)
        subprocess.run([MILLPOND, "train", "cnn_224", "--synthetic", "--epochs", "3", "--steps-per-epoch", "1", "--run", "engine.pond"], cwd=at, check=True, capture_output=True)
        for name, recorded in RECORDED.items():
            rebuilt(os.path.join(SOURCE, "tests/verdict/recorded", recorded), os.path.join(at, "leak.pond"), os.path.join(at, f"{name}.pond"))
        cls.runs = {name: Run(at, name) for name in [*WATCHED, *RECORDED, "engine"]}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @of()
    def test_answer_and_findings_are_those_of_the_json(self, r):
        self.assertEqual(r.d["verdict"], r.json["verdict"])
        self.assertEqual(r.d["sentence"], r.json["sentence"])
        self.assertEqual(len(r.d["findings"]), len(r.json["findings"]))
        for shown, told in zip(r.d["findings"], r.json["findings"]):
            for ours, theirs in {"cause": "cause", "rate": "bytes_per_unit", "total": "total_bytes", "unit": "unit", "units_seen": "units_seen", "fix": "fix"}.items():
                self.assertEqual(shown[ours], told[theirs], ours)
            self.assertEqual((shown["each"], shown["chain"]), (told["each"], [step[:400] for step in told["chain"]]))
            if told["forecast"]:
                self.assertEqual(shown["forecast"]["bytes"], told["forecast"]["limit_bytes"])
                for key in ("seconds", "seconds_range", "limit", "unit_index"):
                    self.assertEqual(shown["forecast"][key], told["forecast"][key], key)
                self.assertEqual(shown["forecast"]["words"], told["forecast_words"])
            self.assertEqual(shown["rate_range"], told["bytes_per_unit_range"])
            for key in ("process", "processes", "space", "sets_verdict", "evidence", "threads", "holder", "title"):
                self.assertEqual(shown[key], told[key], key)
            self.assertEqual(shown["blame"] and [shown["blame"][k] for k in ("file", "line", "function", "snippet")], told["blame"] and [told["blame"][k] for k in ("file", "line", "function", "snippet")])
        self.assertEqual([(a["what"], a["text"]) for a in r.d["advice"]], [(a["what"], a["text"]) for a in r.json["advice"]])

    @of()
    def test_what_is_left_of_every_age_is_of_the_process_and_line_that_are_blamed(self, r):
        frames = r.frames()
        for shown in r.d["findings"]:
            process = shown["process"] or r.main()
            last = r.q("SELECT id FROM marks WHERE process = ? AND period AND EXISTS (SELECT 1 FROM site_states WHERE mark = marks.id) ORDER BY t DESC, id DESC LIMIT 1", process)
            if shown["space"] != "host" or not last:
                self.assertIsNone(shown["cohorts"])
                continue
            every, line = [0] * 8, [0] * 8
            for stack, ages in r.q("SELECT frames, ages FROM site_states JOIN sites ON sites.id = site WHERE mark = ?", last[0][0]):
                here = shown["blame"] and any((frames[int(i)][0], frames[int(i)][2]) == (shown["blame"]["file"], shown["blame"]["line"]) for i in stack.split())
                for k, value in enumerate(1024 * int(age) for age in ages.split()):
                    every[k] += value
                    line[k] += value if here else 0
            if shown["cohorts"]:
                self.assertEqual(shown["cohorts"]["bytes"], line if shown["cohorts"]["of"] == "line" else every)
            else:
                self.assertEqual(sum(every), 0)

    def check_periods(self, r, shown, process):
        """Every round that is shown is a mark of the file."""
        rows = {(ms(t), index): (rss, None if use is None else use + (mapped or 0) + (arenas or 0))
                for t, index, rss, use, mapped, arenas in r.q('SELECT t, "index", rss, heap_in_use, heap_mapped, python_arenas FROM marks WHERE process = ? AND period AND kind = ?', process, shown["kind"])}
        moments = list(zip(column(shown["t"]), column(shown["index"])))
        self.assertTrue(moments)
        for at, rss, live in zip(moments, column(shown["rss"]), column(shown["live"])):
            self.assertEqual((rss, live), rows[at])
        self.assertEqual(len(shown["x"]), len(moments))

    @of(*WATCHED)
    def test_rounds_that_were_compared(self, r):
        if r.d["periods"]:
            self.check_periods(r, r.d["periods"], r.main())
        for p in r.d["processes"]:
            if p["story"] and p["story"]["periods"]:
                self.check_periods(r, p["story"]["periods"], p["process"])

    def notes(self, r, process, kind):
        return [(t, note) for t, note in ((t, json.loads(text)) for t, text in r.q("SELECT t, text FROM notes WHERE process = ? ORDER BY rowid", process)) if note.get("note") == kind]

    @of(*WATCHED)
    def test_probes_and_counters_are_the_agents(self, r):
        stories = [(r.d["probes"], r.main()), *((p["story"]["probes"], p["process"]) for p in r.d["processes"] if p["story"])]
        for shown, process in stories:
            told = self.notes(r, process, "probe")
            self.assertEqual([(p["t"], p["period"], p["rss"], p["after_gc"], p["after_trim"], p["collected"]) for p in shown],
                             [(ms(t), n.get("period", 0), n.get("rss", 0), n.get("after_gc", 0), n.get("after_trim", 0), n.get("collected", 0)) for t, n in told])
        counters = collections.defaultdict(list)
        for t, note in self.notes(r, r.main(), "counters"):
            for name, value in note["values"].items():
                if isinstance(value, (int, float)):
                    counters[name].append((ms(t), value))
        self.assertEqual({c["name"]: list(zip(column(c["t"]), c["value"])) for c in r.d["counters"]}, {name: sorted(rows, key=lambda row: row[0]) for name, rows in counters.items()})

    @of()
    def test_phases(self, r):
        p = r.d["phases"]
        shown = list(zip(r.names(p["kind"]), r.names(p["name"]), column(p["index"]), column(p["start"]), column(p["end"])))
        self.assertEqual(shown, [(kind, name, index, ms(a), None if b is None else ms(b)) for kind, name, index, a, b in r.q('SELECT kind, name, "index", t_start, t_end FROM phases ORDER BY id')])

    @of(*RECORDED)
    def test_memory_of_gpus_and_pools(self, r):
        self.assertEqual([(g["device"], g["name"], g["total"], g["used_peak"], g["by_program_peak"]) for g in r.d["gpu"]], r.q("SELECT device, name, total, used_peak, by_tree_peak FROM gpus ORDER BY device"))
        for g in r.d["gpu"]:
            rows = {(ms(t), used, by) for t, used, by in r.q("SELECT t, used, by_tree FROM gpu_series WHERE device = ?", g["device"])}
            self.assertLessEqual(set(zip(column(g["t"]), column(g["used"]), column(g["by_program"]))), rows)
        told = collections.defaultdict(list)
        for process, space, pool, t, used, reserved, peak in r.q("SELECT process, s.name, pool, t, in_use, reserved, peak FROM pool_series JOIN spaces s ON s.id = space ORDER BY t"):
            told[process, space, pool].append((ms(t), used, reserved, peak))
        shown = {(p["process"], p["space"], p["pool"]): list(zip(*(column(p[k]) for k in ("t", "in_use", "reserved", "in_use_peak")))) for p in r.d["pools"]}
        self.assertEqual(shown, dict(told))
        self.assertTrue(shown)
        for p in r.d["pools"]:
            rows = told[p["process"], p["space"], p["pool"]]
            self.assertEqual(p["peak"], max(max(used, peak or 0) for _, used, _, peak in rows))
            self.assertEqual(p["pid"], r.q("SELECT pid FROM processes WHERE id = ?", p["process"])[0][0])
            if p["periods"]:
                self.assertLessEqual(set(column(p["periods"]["rss"])), {used for _, used, _, _ in rows}, "rounds are moments of the pool")
        leads = next(f for f in r.d["findings"] if f["sets_verdict"])
        self.assertIn((leads["process"], leads["space"]), {key[:2] for key in shown}, "what is blamed has its pool")

    def test_a_leak_in_a_child_is_told_of_the_child(self):
        r = self.runs["worker"]
        leads = next(f for f in r.d["findings"] if f["sets_verdict"])
        self.assertEqual(r.d["verdict"], "leak", r.d["sentence"])
        self.assertNotEqual(leads["process"], r.main())
        story = next(p for p in r.d["processes"] if p["process"] == leads["process"])["story"]
        child, main = column(story["periods"]["rss"]), column(r.d["periods"]["rss"])
        self.assertGreater(child[-1] - child[0], 24 << 20)
        self.assertLess(abs(main[-1] - main[len(main) // 2]), 8 << 20)

    @of()
    def test_peak_start_end_and_time(self, r):
        f = r.d["facts"]
        sampled = [rss for (rss,) in r.q("SELECT rss FROM os_series WHERE rss > 0 ORDER BY t, rowid")]
        peaks = [p for (p,) in r.q("SELECT peak_rss FROM os_series WHERE peak_rss > 0")]
        self.assertEqual(f["peak"], max([int(float(r.meta.get("peak_rss", 0))), *sampled, *peaks]))
        self.assertEqual(f["peak"], r.json["peak_rss"])
        self.assertEqual(f["end"], sampled[-1])
        self.assertEqual(f["baseline"], r.json["baseline_rss"])
        self.assertEqual(f.get("last_round", {}).get("rss"), r.json["last_round_rss"])
        self.assertAlmostEqual(f["seconds"], max(float(r.meta["seconds"]), r.q("SELECT max(t) FROM os_series")[0][0]), places=2)
        if "planned_bytes" in r.meta:
            self.assertEqual(f["planned"], int(r.meta["planned_bytes"]))

    @of()
    def test_resident_memory_point_by_point(self, r):
        rows = r.q("SELECT t, rss, swap FROM os_series WHERE rss > 0 ORDER BY rowid")
        self.assertEqual(column(r.d["resident"]["t"]), [ms(t) for t, _, _ in rows])
        self.assertEqual(column(r.d["resident"]["rss"]), [rss for _, rss, _ in rows])
        self.assertEqual(column(r.d["resident"]["swap"]), [swap for _, _, swap in rows])

    @of(*WATCHED)
    def test_marks(self, r):
        rows = r.q('SELECT t, kind, "index", period, rss FROM marks WHERE process = ? ORDER BY t, id', r.main())
        m = r.d["marks"]
        self.assertEqual(list(zip(column(m["t"]), r.names(m["kind"]), column(m["index"]), column(m["period"]), column(m["rss"]))), [(ms(t), *rest) for t, *rest in rows])

    @of("leak", "family")
    def test_accounts_of_a_watched_run_add_up_to_resident_memory_and_name_what_the_allocators_said(self, r):
        rows = r.q("SELECT t, rss, heap_in_use, heap_mapped, python_arenas, heap_free FROM marks WHERE process = ? AND rss > 0 AND heap_in_use IS NOT NULL ORDER BY t, id", r.main())
        a = r.d["accounts"]
        self.assertEqual(column(a["t"]), [ms(row[0]) for row in rows])
        self.assertEqual(column(a["resident"]), [row[1] for row in rows])
        bands = {entry["name"]: column(entry["bytes"]) for entry in a["list"]}
        kinds = {entry["name"]: entry["kind"] for entry in a["list"]}
        for i, (_, rss, use, mapped, arenas, free) in enumerate(rows):
            resident = sum(values[i] for name, values in bands.items() if kinds[name] != "reserved")
            self.assertEqual(resident, rss, "the bands are resident bytes, all of them")
            named = sum(v or 0 for v in (use, mapped, arenas, free))
            over = sum(values[i] for name, values in bands.items() if kinds[name] == "reserved")
            self.assertEqual(over, max(0, named - rss), "what is named and not resident stands beside them")
            allocators = sum(values[i] for name, values in bands.items() if kinds[name] in ("use", "retained"))
            self.assertEqual(allocators + over, named)
            if over == 0:
                for name, value in {"malloc, in use": use, "malloc, large blocks": mapped, "Python objects": arenas, "malloc, free but kept": free}.items():
                    self.assertEqual(bands.get(name, [0] * len(rows))[i], value or 0, name)

    def test_accounts_of_a_program_that_marks_nothing_are_there_by_time(self):
        r = self.runs["silent"]
        a = r.d["accounts"]
        rows = r.q("SELECT t, rss, (SELECT sum(bytes) FROM site_states WHERE mark = marks.id) FROM marks WHERE process = ? AND rss > 0 AND EXISTS (SELECT 1 FROM site_states WHERE mark = marks.id) ORDER BY t, id", r.main())
        self.assertGreater(len(rows), 4)
        self.assertEqual(column(a["t"]), [ms(row[0]) for row in rows])
        bands = {entry["name"]: column(entry["bytes"]) for entry in a["list"]}
        for i, (_, rss, sampled) in enumerate(rows):
            parts = {name: values[i] for name, values in bands.items()}
            over = parts.pop("mapped, not touched", 0)
            self.assertEqual(sum(parts.values()), rss)
            self.assertEqual(sum(v for name, v in parts.items() if "sampled blocks" in name and not name.startswith("not")) + over, sampled)
        self.assertGreater(max(bands["your code, sampled blocks"]), 16 << 20)

    def test_accounts_of_the_engine(self):
        r = self.runs["engine"]
        rows = r.q("SELECT t, name, bytes FROM series JOIN accounts ON accounts.id = account WHERE kind = 'current' ORDER BY t, series.rowid")
        moments = [t for (t,) in r.q("SELECT t FROM os_series ORDER BY rowid")]
        bands = {entry["name"]: column(entry["bytes"]) for entry in r.d["accounts"]["list"]}
        held, k = collections.defaultdict(int), 0
        for i, t in enumerate(moments):
            while k < len(rows) and rows[k][0] <= t:
                held[rows[k][1]] = rows[k][2]
                k += 1
            for name, values in bands.items():
                self.assertEqual(values[i], held[name], f"{name} at {t}")
        self.assertEqual(sum(1 for v in held.values() if v), sum(1 for v in bands.values() if v[-1]))

    def places(self, r, process):
        """(stack of frames) -> site, as the database has it."""
        frames = r.frames()
        out = {}
        for site, ids, total, freed in r.q("SELECT id, frames, total_bytes, freed_bytes FROM sites WHERE process = ?", process):
            out[site] = ([tuple(frames[int(i)]) for i in ids.split()], total, freed)
        return out

    def doubt(self, r, size, blocks):
        """What 95 % lie within, squared, for each byte: a block is taken with probability 1 - exp(-size / interval)."""
        interval = float(r.meta.get("sampling.interval", 0))
        if not interval or not blocks or not size or size / blocks >= interval:
            return 0
        taken = -math.expm1(-size / blocks / interval)
        return 1.96 ** 2 * (size / blocks) * (1 - taken) / taken

    def check_sites(self, r, shown, process):
        frames = list(zip(r.names(shown["frames"]["file"]), r.names(shown["frames"]["function"]), column(shown["frames"]["line"]), column(shown["frames"]["flags"])))
        told = self.places(r, process)
        by_stack = collections.defaultdict(list)
        for site, (stack, _, _) in told.items():
            by_stack[tuple((f[0], f[1], f[2]) for f in stack)].append(site)
        details = {site: (thread, soon) for site, thread, soon in r.q("SELECT site, thread, temporary_bytes FROM site_details")}
        moments = column(shown["snapshots"]["t"])
        rows = {ms(t): (mark, rss) for mark, t, rss in r.q("SELECT id, t, rss FROM marks WHERE process = ? AND EXISTS (SELECT 1 FROM site_states WHERE mark = marks.id)", process)}
        self.assertEqual(len(shown["stacks"]), len(shown["bytes"]))
        matched = []
        blocks = dict(r.q("SELECT id, total_blocks FROM sites WHERE process = ?", process))
        last = dict(r.q("SELECT site, sum(blocks) FROM site_states WHERE mark = ? GROUP BY site", rows[moments[-1]][0]))
        for k, stack in enumerate(shown["stacks"]):
            sites = by_stack[tuple(frames[i][:3] for i in stack)]
            site = next(s for s in sites if s not in matched and told[s][1] == shown["allocated"][k])
            matched.append(site)
            self.assertEqual(shown["freed"][k], told[site][2])
            self.assertEqual(shown["temporary"][k], details[site][1])
            self.assertLessEqual(shown["temporary"][k], shown["freed"][k], "what lived for a moment was freed")
            self.assertLessEqual(shown["freed"][k], shown["allocated"][k], "what was freed was allocated")
            self.assertEqual(shown["thread"][k] >= 0, details[site][0] is not None)
            self.assertAlmostEqual(shown["doubt"][k], self.doubt(r, told[site][1], blocks[site]), delta=1)
            self.assertEqual(shown["blocks"][k], round(last.get(site, 0)))
        for i, t in enumerate(moments):
            mark, rss = rows[t]
            alive = dict(r.q("SELECT site, sum(bytes) FROM site_states WHERE mark = ? GROUP BY site", mark))
            self.assertEqual(column(shown["snapshots"]["rss"])[i], rss)
            self.assertEqual(column(shown["snapshots"]["sum"])[i], sum(alive.values()))
            listed = 0
            for k, site in enumerate(matched):
                value = column(shown["bytes"][k])[i]
                self.assertEqual(value, alive.get(site, 0))
                listed += value
            self.assertEqual(listed + column(shown["snapshots"]["other"])[i], sum(alive.values()), "places add up to all that was sampled")

    @of(*WATCHED)
    def test_who_holds_the_memory(self, r):
        self.check_sites(r, r.d["sites"], r.main())
        for p in r.d["processes"]:
            if p["sites"]:
                (row,) = r.q("SELECT id FROM processes WHERE pid = ? AND abs(t_start * 1000 - ?) < 1", p["pid"], p["start"])[0]
                self.check_sites(r, p["sites"], row)

    @of(*WATCHED)
    def test_your_lines(self, r):
        self.check_lines(r, r.d["lines"], r.main())
        for p in r.d["processes"]:
            if p["story"] and p["story"]["lines"]:
                self.check_lines(r, p["story"]["lines"], p["process"])

    def check_lines(self, r, lines, process):
        told = self.places(r, process)
        details = dict(r.q("SELECT site, temporary_bytes FROM site_details"))
        last = r.q("SELECT id, t FROM marks WHERE process = ? AND period AND EXISTS (SELECT 1 FROM site_states WHERE mark = marks.id) ORDER BY t DESC, id DESC LIMIT 1", process)
        mark, t = last[0]
        alive = dict(r.q("SELECT site, sum(bytes) FROM site_states WHERE mark = ? GROUP BY site", mark))
        totals = dict(r.q("SELECT id, total_blocks FROM sites WHERE process = ?", process))
        states = {site: (size, blocks) for site, size, blocks in r.q("SELECT site, sum(bytes), sum(blocks) FROM site_states WHERE mark = ? GROUP BY site", mark)}
        sums = collections.defaultdict(lambda: [0, 0, 0, 0, 0])
        for site, (stack, total, _) in told.items():
            own = next((f for f in stack if f[4] and "__autograph_generated_file" not in f[0]), None)
            if own:
                entry = sums[own[0], own[2]]
                entry[0] += total
                entry[1] += alive.get(site, 0)
                entry[2] += details.get(site, 0)
                size, blocks = states.get(site, (0, 0))
                entry[3] += size * self.doubt(r, size, blocks)
                entry[4] += total * self.doubt(r, total, totals[site])
        self.assertEqual(lines["t"], ms(t))
        seen = 0
        for file, line, allocated, freed, kept, soon, kept_error, error in zip(r.names(lines["file"]), *(column(lines[k]) for k in ("line", "allocated", "freed", "kept", "temporary", "kept_error", "allocated_error"))):
            want = sums[file, line]
            self.assertEqual(kept, want[1], f"{file}:{line}")
            self.assertEqual(allocated, max(want[0], want[1]))
            self.assertEqual(allocated, freed + kept, "allocated is freed and kept")
            self.assertEqual(soon, min(want[2], freed))
            self.assertAlmostEqual(kept_error, math.sqrt(want[3]), delta=1)
            self.assertAlmostEqual(error, math.sqrt(max(want[3], want[4])), delta=1)
            seen += 1
        self.assertEqual(seen, sum(1 for v in sums.values() if v[0] or v[1]))

    @of(*WATCHED)
    def test_source_is_what_the_run_holds(self, r):
        rows = [(file, function, first, text.split("\n")[:-1] if text.endswith("\n") else text.split("\n")) for file, function, first, text in r.q("SELECT file, function, first, text FROM sources ORDER BY id")]
        self.assertEqual([(r.d["strings"][s["file"]], r.d["strings"][s["function"]], s["first"], s["lines"]) for s in r.d["sources"]], rows)

    def test_the_source_of_a_leak_is_stored(self):
        self.assertTrue(self.runs["leak"].d["sources"])

    @of(*WATCHED)
    def test_processes_and_their_sum(self, r):
        ids = {p["pid"]: row for row, pid in r.q("SELECT id, pid FROM processes") for p in r.d["processes"] if p["pid"] == pid}
        self.assertEqual(sorted(p["pid"] for p in r.d["processes"] if p["pid"]), sorted(pid for (pid,) in r.q("SELECT pid FROM processes")))
        self.assertEqual([p["main"] for p in r.d["processes"]], [True] + [False] * (len(r.d["processes"]) - 1))
        sums = collections.defaultdict(int)
        for p in r.d["processes"]:
            rows = r.q("SELECT t, sum(resident) FROM process_series JOIN spaces ON spaces.id = space WHERE process = ? AND name IN ('host', 'shared') GROUP BY t ORDER BY t", ids[p["pid"]])
            self.assertEqual(list(zip(column(p["t"]), column(p["resident"]))), [(ms(t), v) for t, v in rows])
            self.assertEqual(p["peak"], max([v for _, v in rows], default=0))
            private = dict((ms(t), v) for t, v in r.q("SELECT t, sum(private) FROM process_series JOIN spaces ON spaces.id = space WHERE process = ? AND name IN ('host', 'shared') GROUP BY t", ids[p["pid"]]))
            self.assertEqual(dict(zip(column(p["t"]), column(p["private"]))), private)
            self.assertEqual((p["process"], p["parent"], p["name"], p["seen"]), r.q("SELECT id, parent, name, seen FROM processes WHERE id = ?", ids[p["pid"]])[0])
            for t, v in rows:
                sums[ms(t)] += v
        if r.d["tree"]:
            tree = dict(zip(column(r.d["tree"]["t"]), column(r.d["tree"]["rss"])))
            self.assertEqual(tree, {ms(t): v for t, v in r.q("SELECT t, rss FROM tree_series")})
            for key in ("private_dirty", "pss", "processes"):
                self.assertEqual(dict(zip(column(r.d["tree"]["t"]), column(r.d["tree"][key]))), {ms(t): v for t, v in r.q(f"SELECT t, {key} FROM tree_series")})
            for t, v in tree.items():
                if t in sums:
                    self.assertEqual(sums[t], v, "the processes add up to all of them together")

    def test_children_are_among_the_processes(self):
        self.assertEqual(len(self.runs["family"].d["processes"]), 3)
        self.assertEqual(max(column(self.runs["family"].d["tree"]["processes"])), 3)

    def test_threads(self):
        r = self.runs["family"]
        self.assertEqual(len(r.d["threads"]), r.q("SELECT count(*) FROM threads")[0][0])
        self.assertIn("main thread", r.d["threads"])
        churning = next(i for i, name in enumerate(r.d["threads"]) if name.startswith("churn"))
        of_thread = [k for k, t in enumerate(r.d["sites"]["thread"]) if t == churning]
        soon = sum(r.d["sites"]["temporary"][k] for k in of_thread)
        self.assertGreater(soon, 0.5 * sum(r.d["sites"]["allocated"][k] for k in of_thread), "what that thread takes it gives back at once")
        self.assertGreater(soon, 0.8 * sum(r.d["sites"]["temporary"]))

    @of(*WATCHED)
    def test_sizes(self, r):
        shown = {at: row for at, *row in zip(*(r.d["sizes"][k] for k in ("from", "blocks", "bytes", "freed", "temporary"))) if row[1]}
        told = {at: [round(blocks), *rest] for at, blocks, *rest in r.q('SELECT "from", sum(blocks), sum(bytes), sum(freed_bytes), sum(temporary_bytes) FROM sizes GROUP BY 1')}
        self.assertEqual(shown, told)
        self.assertEqual(r.d["sizes"]["from"], sorted(r.d["sizes"]["from"]))
        for p in r.d["processes"]:
            rows = {at: [round(blocks), *rest] for at, blocks, *rest in r.q('SELECT "from", sum(blocks), sum(bytes), sum(freed_bytes), sum(temporary_bytes) FROM sizes WHERE process = ? GROUP BY 1', p["process"])}
            own = p["sizes"] or {k: [] for k in ("from", "blocks", "bytes", "freed", "temporary")}
            self.assertEqual({at: row for at, *row in zip(*(own[k] for k in ("from", "blocks", "bytes", "freed", "temporary"))) if row[1]}, rows)

    def test_large_blocks_that_come_and_go_are_in_their_class(self):
        big = dict(zip(self.runs["family"].d["sizes"]["from"], self.runs["family"].d["sizes"]["temporary"]))
        self.assertEqual(max(big, key=big.get), 2 << 20, "blocks of 3 MiB are from 2 to 4 MiB")

    @of()
    def test_the_account_of_growth_adds_up_and_is_that_of_the_json(self, r):
        shown, told = r.d["growth"], r.json["accounts"]
        self.assertEqual(len(shown), len(told))
        pids = {row: pid for row, pid in r.q("SELECT id, pid FROM processes")}
        for page, account in zip(shown, told):
            self.assertEqual(sum(p["bytes"] for p in page["parts"]), page["growth"], "the parts are the growth, to the byte")
            self.assertEqual(page["growth"], round(account["growth"]))
            self.assertEqual((page["tree"], page["space"], page["unit"]), (account["tree"], account["space"], account["unit"]))
            self.assertEqual(page["pid"], None if account["tree"] else pids.get(account["process"]))
            self.assertEqual([p["name"] for p in page["parts"]], [p["name"] for p in account["parts"]])
            for a, b in zip(page["parts"], account["parts"]):
                self.assertLessEqual(abs(a["bytes"] - b["bytes"]), 1 + len(account["parts"]))
                self.assertLessEqual(b["range"][0], b["range"][1])
            self.assertAlmostEqual(sum(p["bytes"] for p in account["parts"]), account["growth"], delta=1e-3)

    def test_the_account_is_of_what_the_system_counted(self):
        r = self.runs["leak"]
        host = next(a for a in r.json["accounts"] if a["space"] == "host" and a["process"] == r.main())
        rows = r.q("SELECT t, rss FROM marks WHERE process = ? AND period AND kind = 'epoch' AND rss > 0 ORDER BY t", r.main())
        rows = [rss for t, rss in rows if host["from"] - 1e-6 <= t <= host["to"] + 1e-6]
        some = max(1, min(5, len(rows) // 4))
        grown = (sum(rows[-some:]) - sum(rows[:some])) / some
        shared = next((a["growth"] for a in r.json["accounts"] if a["space"] == "shared" and a["process"] == r.main()), 0)
        self.assertAlmostEqual(host["growth"] + shared, grown, delta=1)
        # What the list of the example keeps is nearly all of it, and little has no explanation.
        held = sum(p["bytes"] for p in host["parts"] if p["kind"] in ("held", "native", "in use"))
        self.assertGreater(held, 0.8 * host["growth"])
        self.assertLess(sum(p["bytes"] for p in host["parts"] if p["kind"] == "unexplained"), 0.1 * host["growth"])

    def test_the_tree_has_an_account_of_its_own(self):
        r = self.runs["family"]
        self.assertTrue(r.json["accounts"][0]["tree"])
        self.assertEqual(sum(1 for a in r.json["accounts"] if a["tree"]), 1)

    @of()
    def test_what_was_measured(self, r):
        m = r.d["measured"]
        self.assertEqual(m["samples"], int(r.meta.get("sampling.samples", 0)))
        self.assertEqual(m["interval"], int(float(r.meta.get("sampling.interval", 0))))
        self.assertEqual(m["dropped"], int(r.meta.get("dropped", 0)))
        self.assertAlmostEqual(m["probe_seconds"], float(r.meta.get("overhead.probe_cpu_s", 0)))
        self.assertAlmostEqual(m["collector_seconds"], float(r.meta.get("overhead.collector_cpu_s", 0)))
        self.assertEqual(m["probe_bytes"], int(float(r.meta.get("overhead.probe_bytes", 0))))
        self.assertEqual(m["agent_seconds"], r.json["overhead"]["agent_s"])
        self.assertEqual(m["remarks"], r.meta.get("remarks", ""))
        x = m["explained"]
        if r.name in RECORDED:
            return  # its samples were not kept
        if r.name == "engine":
            self.assertEqual((x["resident"], x["explained"]), r.q("SELECT rss, explained FROM os_series WHERE rss IS NOT NULL AND explained IS NOT NULL ORDER BY rowid DESC LIMIT 1")[0])
            return
        mark, rss, use, mapped, arenas, free = r.q("SELECT id, rss, heap_in_use, heap_mapped, python_arenas, heap_free FROM marks WHERE process = ? AND rss IS NOT NULL AND kind != 'end' "
                                                   "AND EXISTS (SELECT 1 FROM site_states WHERE mark = marks.id) ORDER BY t DESC, id DESC LIMIT 1", r.main())[0]
        sampled = r.q("SELECT sum(bytes) FROM site_states WHERE mark = ?", mark)[0][0]
        self.assertEqual(x["resident"], rss)
        self.assertEqual(x["with_line"], sampled)
        self.assertEqual(x["in_use"], max(sum(v or 0 for v in (use, mapped, arenas)), sampled))
        self.assertEqual(x["free"], free or 0)
        self.assertEqual(x["files"], int(r.meta["file_rss"]))
        self.assertAlmostEqual(x["with_line_error"], math.sqrt(sum(size * self.doubt(r, size, blocks) for size, blocks in r.q("SELECT bytes, blocks FROM site_states WHERE mark = ?", mark))), delta=1)
        self.assertEqual([l["bytes"] for l in r.d["limits"]], [int(r.meta[k]) for k in ("limit.bytes", "limit.asked") if k in r.meta])

    def test_the_plan_buffer_by_buffer(self):
        r = self.runs["engine"]
        rows = r.q("SELECT id, name, calls, planned_bytes, lower_bound_bytes FROM programs ORDER BY id")
        self.assertEqual([(p["name"], p["calls"], p["planned"], p["lower_bound"]) for p in r.d["programs"]], [row[1:] for row in rows])
        for (program, *_), p in zip(rows, r.d["programs"]):
            b = p["buffers"]
            shown = list(zip(r.names(b["name"]), r.names(b["account"]), r.names(b["layer"]), *(column(b[k]) for k in ("offset", "size", "first", "last"))))
            calls = list(zip(r.names(p["ops"]["op"]), r.names(p["ops"]["layer"]), column(p["ops"]["workspace"])))
            self.assertEqual(calls, r.q('SELECT op, layer, workspace FROM plan_calls WHERE program = ? ORDER BY "index"', program))
            self.assertEqual(shown, r.q('SELECT b.name, a.name, layer, "offset", size, first, last FROM plan_buffers b JOIN accounts a ON a.id = account WHERE program = ? ORDER BY b.rowid', program))

    @of("leak", "family")
    def test_title_and_header_begin_with_the_script(self, r):
        with open(r.page) as file:
            title = re.search("<title>([^<]*)</title>", file.read()).group(1)
        script = os.path.basename(WATCHED[r.name][1])
        self.assertTrue(r.d["title"].startswith(script), r.d["title"])
        self.assertTrue(title.startswith(script), title)

    @of(*WATCHED)
    def test_our_agent_is_none_of_the_programs_lines(self, r):
        own = {file for file, flags in zip(r.names(r.d["sites"]["frames"]["file"]), column(r.d["sites"]["frames"]["flags"])) if flags & 2}
        ours = [f for f in own if "millpond" in f and "/inject/" in f or "sitecustomize" in f or f.startswith("<millpond")]
        self.assertEqual(ours, [])

    def test_what_changed_between_two_runs(self):
        folder = self.folder.name
        subprocess.run([MILLPOND, "report", "leak.pond", "family.pond", "-o", "both.html"], cwd=folder, check=True, capture_output=True)
        told = json.loads(subprocess.run([MILLPOND, "report", "leak.pond", "family.pond", "--rows", "200", "--json", "-"], cwd=folder, check=True, capture_output=True, text=True).stdout)
        with open(os.path.join(folder, "both.html")) as file:
            document = json.loads(zlib.decompress(base64.b64decode(re.search(r'<script id="data"[^>]*>([^<]+)</script>', file.read()).group(1))))
        shown = document["compare"]
        self.assertEqual(shown["sentence"], told["sentence"])
        self.assertEqual(shown["places"], told["places"])
        for side, name, one in zip(("before", "after"), ("leak", "family"), document["runs"]):
            self.assertEqual({k: v for k, v in shown[side].items() if k != "file"}, {k: v for k, v in told[side].items() if k != "file"})
            self.assertEqual(shown[side]["peak_rss"], self.runs[name].d["facts"]["peak"])
            self.assertEqual(shown[side]["end_rss"], self.runs[name].d["facts"]["end"])
            self.assertEqual(one["facts"], self.runs[name].d["facts"])
            most = max([self.runs[name].d["facts"]["peak"], *(v for (v,) in self.runs[name].q("SELECT pss FROM tree_series WHERE processes > 1 AND pss IS NOT NULL"))])
            self.assertEqual(shown[side]["tree_peak"], most)


if __name__ == "__main__":
    unittest.main(verbosity=1)
