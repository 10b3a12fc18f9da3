"""Statements with the values inside fill the statement cache; it looks like a leak but stops growing.
ghaering/pysqlite#68
Inserts measurements with literal SQL over one connection with a large statement cache."""
import sqlite3
import time

CACHED = 9000


def statements(start, count):
    for n in range(start, start + count):
        values = ", ".join(f"({n}, {k}, {n * k % 101})" for k in range(6))
        yield f"INSERT INTO readings (sensor, slot, value) VALUES {values}"


def main():
    db = sqlite3.connect(":memory:", cached_statements=CACHED)
    db.execute("CREATE TABLE readings (sensor INTEGER, slot INTEGER, value INTEGER)")
    for batch in range(60):
        for statement in statements(batch * 250, 250):
            db.execute(statement)
        if batch % 4 == 3:
            db.execute("DELETE FROM readings")
            db.commit()
        print(f"batch {batch}", db.total_changes, flush=True)
        time.sleep(0.09)
    db.close()


if __name__ == "__main__":
    main()
