"""recorded.py RUN.json LIKE.pond OUT.pond: a run that was recorded on a machine with a GPU (tests/verdict/recorded holds its tables) as a run file again. The tables are those of LIKE."""
import json
import shutil
import sqlite3
import sys


def rebuilt(recorded, like, out):
    shutil.copy(like, out)
    with open(recorded) as file:
        tables = json.load(file)["tables"]
    db = sqlite3.connect(out)
    minor = db.execute("SELECT value FROM meta WHERE key = 'schema_minor'").fetchone()
    for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'").fetchall():
        db.execute(f"DELETE FROM {name}")
    for name, table in tables.items():
        columns = ", ".join(f'"{column}"' for column in table["columns"])
        db.executemany(f"INSERT OR REPLACE INTO {name} ({columns}) VALUES ({', '.join('?' * len(table['columns']))})", table["rows"])
    db.execute("INSERT OR REPLACE INTO meta VALUES ('schema_minor', ?)", minor)
    db.commit()
    db.close()


if __name__ == "__main__":
    rebuilt(*sys.argv[1:])
