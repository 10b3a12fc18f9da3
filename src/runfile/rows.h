// rows: what a run file holds, one struct for each table (docs/runfile.md is the page for readers). Plain values: a
// number that was not measured is absent, never 0. Times are seconds since the run began.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "millpond/bytes.h"

namespace millpond::runfile {

/// Raised when the meaning of something changes; a reader refuses what is newer than itself. A table or a column that
/// is only added raises kMinorVersion instead: older readers do not see it and lose nothing else.
constexpr int kSchemaVersion = 1;
constexpr int kMinorVersion = 2;
constexpr int64_t kMostText = 1 << 16;  // bytes of one value
constexpr int32_t kApplicationId = 0x504f4e44;  // "POND", in the header of the file

struct RowId {
  int64_t value = 0;  // 0: none
  auto operator<=>(const RowId&) const = default;
};

using Meta = std::map<std::string, std::string>;
/// A number of the meta table; nothing when it is not there, is no number, or is one that no run can have (beyond
/// 2^59).
std::optional<double> number(const Meta& meta, const char* key);

struct Phase {
  RowId id, parent;
  std::string kind;  // run, build, compile, fit, epoch, step, validation, evaluate, predict, ...
  std::string name;
  int64_t index = 0;
  double start = 0;
  std::optional<double> end;  // absent: still open, or the program died in it
};

/// Bytes of an account at a moment, and its peak within the phase.
struct AccountBytes {
  std::string account;
  Bytes current, peak;
};
enum class SeriesKind { kCurrent, kPeak };
struct SeriesRow {
  double t = 0;
  RowId phase;
  std::string account;
  SeriesKind kind = SeriesKind::kCurrent;
  Bytes bytes;
};

struct OsRow {
  double t = 0;
  RowId phase;
  std::optional<Bytes> rss, peak_rss, pss, private_dirty, swap;
  std::optional<Bytes> heap_in_use, heap_free;  // what the allocator says
  std::optional<Bytes> explained;  // of rss, as in design: charged, files, stacks, code, free in the allocator
};

struct PlanBuffer {
  std::string name, account, layer;
  Bytes offset, size;
  int64_t first = 0, last = 0;  // calls, both included
};
struct PlanCall {
  std::string op, layer, name;
  Bytes workspace;
};
/// A planned program: one training step, one prediction.
struct Program {
  RowId id;
  std::string name;
  int64_t calls = 0;
  Bytes planned, lower_bound;
  double plan_seconds = 0;
  std::string method;
};

// ---- what the doctor saw (docs/doctor.md) ----

/// A watched process.
struct Process {
  RowId id;
  int64_t pid = 0, parent = 0;
  std::string name;
  double start = 0;
};
/// How the function of a native frame begins that has no name: only its place in the module is known ("+0x1af898").
constexpr const char* kOffset = "+0x";
/// A line of Python, or a native function. For native ones `file` is the source where it is known, otherwise the module.
struct FrameRow {
  std::string file, function;
  int64_t line = 0;
  bool native = false, user = false;  // user: neither a library nor the interpreter
  auto operator<=>(const FrameRow&) const = default;
};
/// A place that allocates: innermost frame first. Totals: estimates of all it ever allocated and gave back.
struct SiteRow {
  RowId id, process;
  std::vector<RowId> frames;
  Bytes total;
  double total_blocks = 0;
  Bytes freed;
};
/// A moment of the program: the end of an epoch, a line it printed, a timer.
struct MarkRow {
  RowId id, process;
  double t = 0;
  std::string kind, name;
  int64_t index = 0;
  bool period = false;  // the same place of a loop as every other mark of this kind
  std::optional<Bytes> rss, heap_in_use, heap_free, heap_mapped, python_arenas;
  std::optional<Bytes> private_dirty, pss;  // of the process and its children
  int64_t processes = 1;
  std::vector<int64_t> units;  // batches, epochs, ... counted so far, in the order of probe/shared.h
};
/// What is alive of a site at a mark, by age: equal parts of the time since the first period, oldest first.
struct SiteStateRow {
  RowId mark, site;
  Bytes bytes;
  double blocks = 0;
  std::vector<Bytes> ages;
};
/// The watched process and all below it.
struct TreeRow {
  double t = 0;
  int64_t processes = 1;
  std::optional<Bytes> rss, private_dirty, pss;
};
/// A GPU. Peaks are of every look, also of those that are no longer among the points.
struct GpuRow {
  int64_t device = 0;  // as the driver counts, from 0
  std::string name;
  Bytes total, used_peak;
  std::optional<Bytes> by_tree_peak;  // of the watched processes; absent: the driver did not tell
};
struct GpuPointRow {
  double t = 0;
  int64_t device = 0;
  Bytes used;
  std::optional<Bytes> by_tree;
};
/// JSON, as the agent wrote it.
struct NoteRow {
  double t = 0;
  RowId process;
  std::string text;
};

}  // namespace millpond::runfile
