// schema: the tables of a run file, version 2, as SQL. Process and memory space are keys of every series: `process` is
// NULL where the program that writes the file speaks of itself (the engine), and `space` is a row of `spaces`, of which
// the first is "host". `threads`, `site_details` and `sizes` came with minor version 1 of it; `process_details`,
// `process_memory` and `mapping_series` with minor version 2; `pool_series` with minor version 3.
#pragma once

namespace millpond::runfile {

inline constexpr const char* kSchema = R"sql(
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE accounts (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE spaces (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
INSERT INTO spaces VALUES (1, 'host');
CREATE TABLE processes (id INTEGER PRIMARY KEY, pid INTEGER NOT NULL, parent INTEGER NOT NULL, name TEXT NOT NULL, command TEXT, t_start REAL NOT NULL,
                        t_end REAL, seen TEXT NOT NULL);
CREATE TABLE phases (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, "index" INTEGER NOT NULL,
                     parent INTEGER REFERENCES phases(id), t_start REAL NOT NULL, t_end REAL);
CREATE TABLE series (t REAL NOT NULL, phase INTEGER REFERENCES phases(id), process INTEGER REFERENCES processes(id),
                     space INTEGER NOT NULL REFERENCES spaces(id), account INTEGER NOT NULL REFERENCES accounts(id),
                     kind TEXT NOT NULL, bytes INTEGER NOT NULL);
CREATE TABLE os_series (t REAL NOT NULL, phase INTEGER REFERENCES phases(id), process INTEGER REFERENCES processes(id),
                        space INTEGER NOT NULL REFERENCES spaces(id), rss INTEGER, peak_rss INTEGER, pss INTEGER,
                        private_dirty INTEGER, swap INTEGER, heap_in_use INTEGER, heap_free INTEGER, explained INTEGER);
CREATE TABLE programs (id INTEGER PRIMARY KEY, name TEXT NOT NULL, calls INTEGER NOT NULL, planned_bytes INTEGER NOT NULL,
                       lower_bound_bytes INTEGER NOT NULL, plan_seconds REAL NOT NULL, method TEXT NOT NULL);
CREATE TABLE plan_buffers (program INTEGER NOT NULL REFERENCES programs(id), name TEXT NOT NULL,
                           account INTEGER NOT NULL REFERENCES accounts(id), layer TEXT NOT NULL, "offset" INTEGER NOT NULL,
                           size INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL);
CREATE TABLE plan_calls (program INTEGER NOT NULL REFERENCES programs(id), "index" INTEGER NOT NULL, op TEXT NOT NULL,
                         layer TEXT NOT NULL, name TEXT NOT NULL, workspace INTEGER NOT NULL);
CREATE TABLE process_series (t REAL NOT NULL, process INTEGER REFERENCES processes(id), space INTEGER NOT NULL REFERENCES spaces(id),
                             resident INTEGER, private INTEGER, in_use INTEGER);
CREATE TABLE frames (id INTEGER PRIMARY KEY, file TEXT NOT NULL, function TEXT NOT NULL, line INTEGER NOT NULL, native INTEGER NOT NULL,
                     user INTEGER NOT NULL);
CREATE TABLE sites (id INTEGER PRIMARY KEY, process INTEGER NOT NULL REFERENCES processes(id), frames TEXT NOT NULL,
                    total_bytes INTEGER NOT NULL, total_blocks REAL NOT NULL, freed_bytes INTEGER NOT NULL);
CREATE TABLE marks (id INTEGER PRIMARY KEY, process INTEGER NOT NULL REFERENCES processes(id), t REAL NOT NULL, kind TEXT NOT NULL,
                    name TEXT NOT NULL, "index" INTEGER NOT NULL, period INTEGER NOT NULL, rss INTEGER, heap_in_use INTEGER,
                    heap_free INTEGER, heap_mapped INTEGER, python_arenas INTEGER, private_dirty INTEGER, pss INTEGER,
                    processes INTEGER NOT NULL, units TEXT NOT NULL);
CREATE TABLE site_states (mark INTEGER NOT NULL REFERENCES marks(id), site INTEGER NOT NULL REFERENCES sites(id), bytes INTEGER NOT NULL,
                          blocks REAL NOT NULL, ages TEXT NOT NULL);
CREATE INDEX site_states_of_mark ON site_states(mark);
CREATE TABLE tree_series (t REAL NOT NULL, process INTEGER REFERENCES processes(id), space INTEGER NOT NULL REFERENCES spaces(id),
                          processes INTEGER NOT NULL, rss INTEGER, private_dirty INTEGER, pss INTEGER);
CREATE TABLE notes (t REAL NOT NULL, process INTEGER REFERENCES processes(id), text TEXT NOT NULL);
CREATE TABLE gpus (device INTEGER PRIMARY KEY, name TEXT NOT NULL, total INTEGER NOT NULL, used_peak INTEGER NOT NULL, by_tree_peak INTEGER);
CREATE TABLE gpu_series (t REAL NOT NULL, process INTEGER REFERENCES processes(id), space INTEGER NOT NULL REFERENCES spaces(id),
                         device INTEGER NOT NULL REFERENCES gpus(device), used INTEGER NOT NULL, by_tree INTEGER);
CREATE TABLE threads (id INTEGER PRIMARY KEY, process INTEGER NOT NULL REFERENCES processes(id), tid INTEGER NOT NULL, name TEXT NOT NULL);
CREATE TABLE site_details (site INTEGER PRIMARY KEY REFERENCES sites(id), thread INTEGER REFERENCES threads(id), temporary_bytes INTEGER NOT NULL);
CREATE TABLE sizes (process INTEGER NOT NULL REFERENCES processes(id), "from" INTEGER NOT NULL, blocks REAL NOT NULL, bytes INTEGER NOT NULL,
                    freed_bytes INTEGER NOT NULL, temporary_bytes INTEGER NOT NULL);
CREATE TABLE process_details (process INTEGER PRIMARY KEY REFERENCES processes(id), how TEXT, label TEXT, inherited INTEGER);
CREATE TABLE process_memory (t REAL NOT NULL, process INTEGER NOT NULL REFERENCES processes(id), resident INTEGER NOT NULL, private INTEGER, pss INTEGER,
                             anonymous INTEGER NOT NULL, alive INTEGER);
CREATE TABLE mapping_series (t REAL NOT NULL, process INTEGER REFERENCES processes(id), kind TEXT NOT NULL, mapped INTEGER NOT NULL,
                             resident INTEGER NOT NULL, private INTEGER NOT NULL, pss INTEGER NOT NULL);
CREATE TABLE pool_series (t REAL NOT NULL, process INTEGER NOT NULL REFERENCES processes(id), space INTEGER NOT NULL REFERENCES spaces(id), pool TEXT NOT NULL,
                          in_use INTEGER NOT NULL, reserved INTEGER, peak INTEGER, inactive_split INTEGER, largest_free INTEGER, retries INTEGER NOT NULL,
                          ooms INTEGER NOT NULL, "limit" INTEGER);
CREATE TABLE sources (id INTEGER PRIMARY KEY, file TEXT NOT NULL, function TEXT NOT NULL, first INTEGER NOT NULL, text TEXT NOT NULL);
)sql";

}  // namespace millpond::runfile
