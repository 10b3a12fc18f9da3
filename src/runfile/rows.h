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
constexpr int kSchemaVersion = 2;
constexpr int kMinorVersion = 3;
constexpr int64_t kMostText = 1 << 16;          // bytes of one value
constexpr int32_t kApplicationId = 0x504f4e44;  // "POND", in the header of the file

struct RowId {
  int64_t value = 0;  // 0: none
  auto operator<=>(const RowId&) const = default;
};

using Meta = std::map<std::string, std::string>;
/// A number of the meta table; nothing when it is not there, is no number, or is one that no run can have (beyond
/// 2^59).
std::optional<double> number(const Meta& meta, const char* key);

/// Where memory lies, as `series` and its like say it: "host", "shared" (pages that several processes map), "gpu:0",
/// ...
inline const std::string kHost = "host", kShared = "shared";
std::string gpu_space(int64_t device);

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
  RowId process{};  // none: the program that writes the file
  std::string space = kHost;
};
enum class SeriesKind { kCurrent, kPeak };
struct SeriesRow {
  double t = 0;
  RowId phase;
  std::string account;
  SeriesKind kind = SeriesKind::kCurrent;
  Bytes bytes;
  RowId process{};
  std::string space = kHost;
};

struct OsRow {
  double t = 0;
  RowId phase;
  std::optional<Bytes> rss, peak_rss, pss, private_dirty, swap;
  std::optional<Bytes> heap_in_use, heap_free;  // what the allocator says
  std::optional<Bytes> explained;  // of rss, as in design: charged, files, stacks, code, free in the allocator
  RowId process{};                 // whose; none: the program that writes the file
  std::string space = kHost;
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

/// How a process was seen. kInside: by the probe in it; kOutside: by what the system tells of it; kNot: it is known to
/// have been there, and counted in the sums of the tree.
enum class Seen { kInside, kOutside, kNot };
const char* to_string(Seen seen);
/// A process of the watched tree. Pids come again: the row is the process.
struct Process {
  RowId id;
  int64_t pid = 0, parent = 0;  // parent: a pid too
  std::string name;             // of the program, as the system tells it: "python3"
  double start = 0;
  std::optional<double> end{};  // absent: it outlived the record, or was killed with it
  std::string command{};        // with arguments; empty: not stored
  Seen seen = Seen::kInside;
};
/// What a process held of a memory space at a moment. No process: all those together that have no series of their own.
struct ProcessPointRow {
  double t = 0;
  RowId process;
  std::string space = kHost;
  std::optional<Bytes> resident;  // pages of the process there: shared ones count in each process that touched them
  std::optional<Bytes> private_;  // of those, what no other process has
  std::optional<Bytes> in_use{};  // what its allocator has handed out; only where the probe is inside
};
/// How a process came to be, as far as that is known. kFork: a copy of its parent; kSpawn: a new interpreter, by
/// multiprocessing; kExec: another program.
enum class How { kUnknown, kFork, kSpawn, kExec };
const char* to_string(How how);
struct ProcessDetailRow {
  RowId process;
  How how = How::kUnknown;
  std::string label{};  // the name that multiprocessing gave it: "ForkPoolWorker-2"; empty: none
  std::optional<Bytes>
      inherited{};  // of a fork: memory without a file behind it that it had of its parent when it began
};
/// What the pages of a process were at a moment. Where private_ rises and anonymous does not, pages of its parent
/// became its own: it wrote into them.
struct ProcessMemoryRow {
  double t = 0;
  RowId process;
  Bytes resident;
  std::optional<Bytes> private_,
      pss;          // pss: shared pages count with the part that falls to it, so sums over a tree count each page once
  Bytes anonymous;  // of resident: without a file behind it, shared with its parent or not
  std::optional<Bytes> alive{};  // blocks that this very process took and has not given back (an estimate); only where
                                 // the probe is inside
};
/// What a process had mapped at a moment, by kind of memory (kMappingKinds).
struct MappingRow {
  double t = 0;
  RowId process;  // none: of all together (tmpfs)
  std::string kind;
  Bytes mapped, resident, private_, pss;
};
/// anonymous: of this process alone; stack; shared_anonymous: without a name, shared with its children; shared_memory:
/// /dev/shm and its like; library: files with code; file: other files; device: of a driver, where pinned memory is;
/// tmpfs: files in /dev/shm that were made during the run, mapped or not.
inline constexpr const char* kMappingKinds[] = {"anonymous", "stack", "shared_anonymous", "shared_memory",
                                                "library",   "file",  "device",           "tmpfs"};
/// The text of a function of the user's, as it was when the run was recorded. For code outside of any function: a piece
/// of the file.
struct SourceRow {
  std::string file, function;  // file: as `frames` names it
  int64_t first = 1;           // line number of the first line of `text`
  std::string text;
};
constexpr int64_t kMostSource = 1 << 16;  // bytes of all sources of a run
/// How the function of a native frame begins that has no name: only its place in the module is known ("+0x1af898").
constexpr const char* kOffset = "+0x";
/// A line of Python, or a native function. For native ones `file` is the source where it is known, otherwise the
/// module.
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
/// A thread that was seen to allocate.
struct ThreadRow {
  RowId id, process;
  int64_t tid = 0;   // that of the main thread is the process's pid
  std::string name;  // as the system has it; empty: it was gone before it could be asked
};
/// More of a site, known when the run is over.
struct SiteDetailRow {
  RowId site, thread;  // thread: none: several were seen here
  Bytes temporary;     // of what was freed: what lived for a moment only (probe/shared.h: kSoonMs)
};
/// Blocks of a process from `from` bytes up to the next row: estimates over the whole run.
struct SizeRow {
  RowId process;
  Bytes from;
  double blocks = 0;
  Bytes bytes, freed, temporary;
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
  RowId process{};  // the one that was started; the others are below it
  std::string space = kHost;
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
  RowId process{};      // the root of the tree
  std::string space{};  // gpu_space(device): the writer fills it in
};
/// What a framework's pool had of a device at a moment, in one process, as the framework counts it.
struct PoolRow {
  double t = 0;
  RowId process;
  std::string space;  // gpu_space(device)
  std::string pool;   // "torch", "jax", "tensorflow"
  Bytes in_use;
  std::optional<Bytes> reserved, peak, inactive_split, largest_free;  // peak: of in_use; largest_free: block
  int64_t retries = 0,
          ooms = 0;  // so far: times that it had to give back what it kept, times that even that was not enough
  std::optional<Bytes> limit;  // that the framework knows for the device
};
constexpr size_t kLongestPool = 32;
/// JSON, as the agent wrote it.
struct NoteRow {
  double t = 0;
  RowId process;
  std::string text;
};

}  // namespace millpond::runfile
