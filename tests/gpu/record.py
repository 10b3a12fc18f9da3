"""A run file made small enough to be kept among the tests: the tables that the verdict reads, as JSON, thinned to at most 200 kB (tests/verdict/recorded). Paths become the names of files."""

import json
import re
import sqlite3

kMost = 200_000
kTables = ("meta", "spaces", "processes", "marks", "os_series", "pool_series", "gpus", "gpu_series", "process_series", "tree_series", "frames", "sites", "site_states", "notes")
kMeta = ("schema_minor", "seconds", "status", "exit_code", "signal", "peak_rss", "limit.bytes", "limit.name", "sampling.interval", "dropped", "probes", "command")
kLastOnly = ("holders", "lines", "walk")  # of these notes the last few say it all
kPassed = ("source", "advice", "data", "dataset", "start")


def rows_of(db, table):
    cursor = db.execute("SELECT * FROM %s" % table)
    return [column[0] for column in cursor.description], [list(row) for row in cursor]


def thinned(rows, most):
    """About evenly, with the first and the last."""
    if len(rows) <= most:
        return rows
    step = (len(rows) - 1) / (most - 1)
    return [rows[round(index * step)] for index in range(most)]


def _notes(rows, columns, last):
    text, process = columns.index("text"), columns.index("process")
    kinds = [(row[process], json.loads(row[text]).get("note"), json.loads(row[text]).get("space")) for row in rows]
    kept = []
    for index, (row, kind) in enumerate(zip(rows, kinds)):
        later = sum(1 for other in kinds[index + 1:] if other == kind)
        if kind[1] in kPassed or (kind[1] in kLastOnly and later >= last):
            continue
        kept.append(row)
    return kept


def tables_of(db, marks, points, sites, last):
    """The tables with so many marks of a series, points of a series, sites and notes of a kind."""
    found = {}
    for table in kTables:
        columns, rows = rows_of(db, table)
        if table == "meta":
            rows = [row for row in rows if row[0] in kMeta]
        elif table == "marks":
            series = {}
            for row in rows:
                series.setdefault((row[columns.index("process")], row[columns.index("kind")], row[columns.index("name")]), []).append(row)
            rows = sorted((row for group in series.values() for row in thinned(group, marks if group[0][columns.index("period")] else 8)), key=lambda row: row[0])
        elif table in ("os_series", "gpu_series", "process_series", "tree_series"):
            rows = thinned(rows, points)
        elif table == "pool_series":
            series = {}
            for row in rows:
                series.setdefault(tuple(row[1:4]), []).append(row)
            rows = [row for group in series.values() for row in thinned(group, 4 * points)]
        elif table == "sites":
            rows = sorted(rows, key=lambda row: -row[columns.index("total_bytes")])[:sites]
        elif table == "notes":
            rows = _notes(rows, columns, last)
        found[table] = {"columns": columns, "rows": rows}
    _only_what_is_left(found)
    return found


def _only_what_is_left(tables):
    """Rows of others than the marks and sites that stayed go too; frames keep their numbers, which are their places."""
    marks, sites = ({row[0] for row in tables[name]["rows"]} for name in ("marks", "sites"))
    tables["site_states"]["rows"] = [row for row in tables["site_states"]["rows"] if row[0] in marks and row[1] in sites]
    used = {int(number) for row in tables["sites"]["rows"] for number in row[tables["sites"]["columns"].index("frames")].replace(",", " ").split()}
    for row in tables["frames"]["rows"]:
        if row[0] not in used:
            row[1:3] = ["", ""]


def without_paths(text):
    """Of the user's files only their names are left; what is a library's or the interpreter's stays recognisable as that."""

    def shorter(match):
        path = match.group(0)
        for part in ("/site-packages/", "/dist-packages/", "/lib/python"):
            if part in path:
                return "/usr" + ("" if part == "/lib/python" else "/lib/python3") + path[path.index(part):]
        return path.rpartition("/")[2]

    return re.sub(r"(?:/[A-Za-z0-9_.+@~-]+){2,}", shorter, text)


def make(pond, to, truth, program):
    db = sqlite3.connect("file:%s?mode=ro" % pond, uri=True)
    lines = {key: [number for number, line in enumerate(open(program).read().split("\n"), 1) if line.strip() == truth[key].strip()] for key in ("blame", "or", "born") if key in truth}
    for marks, points, sites, last in ((64, 64, 40, 2), (64, 32, 16, 1), (48, 16, 8, 1), (48, 8, 0, 1), (40, 4, 0, 1)):
        whole = {"truth": dict(truth, lines=lines), "tables": tables_of(db, marks, points, sites, last)}
        text = without_paths(json.dumps(whole, separators=(",", ":")))
        if len(text) <= kMost:
            break
    with open(to, "w") as file:
        file.write(text + "\n")
    if len(text) > kMost:
        raise ValueError("%d bytes" % len(text))
