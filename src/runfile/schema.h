// schema: the tables of a run file, version 1, as SQL.
#pragma once

namespace millpond::runfile {

inline constexpr const char* kSchema = R"sql(
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE accounts (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE phases (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, "index" INTEGER NOT NULL,
                     parent INTEGER REFERENCES phases(id), t_start REAL NOT NULL, t_end REAL);
CREATE TABLE series (t REAL NOT NULL, phase INTEGER REFERENCES phases(id), account INTEGER NOT NULL REFERENCES accounts(id),
                     kind TEXT NOT NULL, bytes INTEGER NOT NULL);
CREATE TABLE os_series (t REAL NOT NULL, phase INTEGER REFERENCES phases(id), rss INTEGER, peak_rss INTEGER, pss INTEGER,
                        private_dirty INTEGER, swap INTEGER, heap_in_use INTEGER, heap_free INTEGER, explained INTEGER);
CREATE TABLE programs (id INTEGER PRIMARY KEY, name TEXT NOT NULL, calls INTEGER NOT NULL, planned_bytes INTEGER NOT NULL,
                       lower_bound_bytes INTEGER NOT NULL, plan_seconds REAL NOT NULL, method TEXT NOT NULL);
CREATE TABLE plan_buffers (program INTEGER NOT NULL REFERENCES programs(id), name TEXT NOT NULL,
                           account INTEGER NOT NULL REFERENCES accounts(id), layer TEXT NOT NULL, "offset" INTEGER NOT NULL,
                           size INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL);
CREATE TABLE plan_calls (program INTEGER NOT NULL REFERENCES programs(id), "index" INTEGER NOT NULL, op TEXT NOT NULL,
                         layer TEXT NOT NULL, name TEXT NOT NULL, workspace INTEGER NOT NULL);
)sql";

}  // namespace millpond::runfile
