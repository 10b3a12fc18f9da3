"""Using a connection as a context manager does not close it, and memory accumulates.
python/cpython#123739
Each job opens the database in a with statement, reads some rows and leaves its connection in a registry."""
import os
import sqlite3
import tempfile
import time

registry = {}


def create(path):
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE samples (id INTEGER PRIMARY KEY, payload BLOB)")
        db.executemany("INSERT INTO samples (payload) VALUES (?)", ((os.urandom(2000),) for _ in range(3000)))


def job(path, number):
    with sqlite3.connect(path) as db:
        registry[number] = db
        db.execute("PRAGMA cache_size = -2000")
        total = 0
        for start in range(0, 3000, 100):
            for (payload,) in db.execute("SELECT payload FROM samples WHERE id > ? LIMIT 100", (start,)):
                total += len(payload)
    return total


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "samples.db")
        create(path)
        for number in range(40):
            job(path, number)
            time.sleep(0.12)


if __name__ == "__main__":
    main()
