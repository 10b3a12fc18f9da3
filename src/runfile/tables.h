// tables: what is asked of a run file, table by table: the columns that readers know, in both versions. Others, which a
// later Millpond may add, are not seen.
#pragma once
#include <cstdint>

namespace millpond::runfile {

/// A table and what is asked of it, in files of version 2 and in those of version 1. Before version 2 there were
/// neither processes nor spaces in a series, so nothing and the host (space 1) stand there; a table without columns was
/// not there.
struct Table {
  const char *name, *columns;
  const char* before = columns;  // of version 1; null: it had no such table
  int since = 0;                 // minor version of version 1
  int since_second = 0;          // minor version of version 2
  int64_t most = 2'000'000;      // rows: many times what Millpond writes, and what a reader has memory for
};
inline constexpr const char* kNotThere = nullptr;
inline constexpr Table kTables[] = {
    {.name = "meta", .columns = "key, value", .most = 10'000},
    {.name = "accounts", .columns = "id, name", .most = 200'000},
    {.name = "phases", .columns = "id, kind, name, \"index\", parent, t_start, t_end", .most = 1'000'000},
    {.name = "series",
     .columns = "t, phase, account, kind, bytes, process, space",
     .before = "t, phase, account, kind, bytes, NULL, 1"},
    {.name = "os_series",
     .columns = "t, phase, rss, peak_rss, pss, private_dirty, swap, heap_in_use, heap_free, explained, process, space",
     .before = "t, phase, rss, peak_rss, pss, private_dirty, swap, heap_in_use, heap_free, explained, NULL, 1",
     .most = 1'000'000},
    {.name = "programs",
     .columns = "id, name, calls, planned_bytes, lower_bound_bytes, plan_seconds, method",
     .most = 10'000},
    {.name = "plan_buffers",
     .columns = "program, name, account, layer, \"offset\", size, first, last",
     .most = 1'000'000},
    {.name = "plan_calls", .columns = "program, \"index\", op, layer, name, workspace", .most = 1'000'000},
    {.name = "processes",
     .columns = "id, pid, parent, name, t_start, t_end, command, seen",
     .before = "id, pid, parent, name, t_start, NULL, NULL, 'inside'",
     .since = 1,
     .most = 100'000},
    {.name = "frames", .columns = "id, file, function, line, native, user", .since = 1, .most = 500'000},
    {.name = "sites",
     .columns = "id, process, frames, total_bytes, total_blocks, freed_bytes",
     .since = 1,
     .most = 500'000},
    {.name = "marks",
     .columns = "id, process, t, kind, name, \"index\", period, rss, heap_in_use, heap_free, heap_mapped, "
                "python_arenas, private_dirty, pss, processes, units",
     .since = 1,
     .most = 200'000},
    {.name = "site_states", .columns = "mark, site, bytes, blocks, ages", .since = 1, .most = 1'000'000},
    {.name = "tree_series",
     .columns = "t, processes, rss, private_dirty, pss, process, space",
     .before = "t, processes, rss, private_dirty, pss, NULL, 1",
     .since = 1,
     .most = 1'000'000},
    {.name = "notes", .columns = "t, process, text", .since = 1, .most = 200'000},
    {.name = "gpus", .columns = "device, name, total, used_peak, by_tree_peak", .since = 2, .most = 1024},
    {.name = "gpu_series",
     .columns = "t, device, used, by_tree, process, space",
     .before = "t, device, used, by_tree, NULL, NULL",
     .since = 2,
     .most = 1'000'000},
    {.name = "spaces", .columns = "id, name", .before = kNotThere, .most = 1024},
    {.name = "process_series",
     .columns = "t, process, space, resident, private, in_use",
     .before = kNotThere,
     .most = 1'000'000},
    {.name = "sources", .columns = "id, file, function, first, text", .before = kNotThere, .most = 10'000},
    {.name = "threads", .columns = "id, process, tid, name", .before = kNotThere, .since_second = 1, .most = 200'000},
    {.name = "site_details",
     .columns = "site, thread, temporary_bytes",
     .before = kNotThere,
     .since_second = 1,
     .most = 500'000},
    {.name = "sizes",
     .columns = "process, \"from\", blocks, bytes, freed_bytes, temporary_bytes",
     .before = kNotThere,
     .since_second = 1,
     .most = 100'000},
    {.name = "process_details",
     .columns = "process, how, label, inherited",
     .before = kNotThere,
     .since_second = 2,
     .most = 100'000},
    {.name = "process_memory",
     .columns = "t, process, resident, private, pss, anonymous, alive",
     .before = kNotThere,
     .since_second = 2,
     .most = 1'000'000},
    {.name = "mapping_series",
     .columns = "t, process, kind, mapped, resident, private, pss",
     .before = kNotThere,
     .since_second = 2,
     .most = 1'000'000},
    {.name = "pool_series",
     .columns =
         "t, process, space, pool, in_use, reserved, peak, inactive_split, largest_free, retries, ooms, \"limit\"",
     .before = kNotThere,
     .since_second = 3,
     .most = 1'000'000},
};

}  // namespace millpond::runfile
