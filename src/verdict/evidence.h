// Evidence: all that is known of a run when it is judged, as plain values. The verdict sees nothing else: no file,
// clock or process.
//
// Recorded runs, live ones and made-up ones (tests) look the same from here. What was not measured is absent.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "millpond/bytes.h"

namespace millpond::verdict {

enum class Unit {
  kBatch,
  kEpoch,
  kModel,
  kCall,
  kTrace,
  kCompile,
  kLine,
  kFit,
  kSecond,
  kRun,
  kRound,
  kTask,
  kRequest
};
constexpr int kCountedUnits = 8;        // up to kFit, as in probe/shared.h
std::string_view to_string(Unit unit);  // "batch", "epoch", "model", "call", "shape", "compile", "line", "fit",
                                        // "second", "run", "round", "task", "request"

/// Bytes by birth: equal parts of the time from the first period to a mark, oldest first.
constexpr int kAgeParts = 8;
using Ages = std::array<Bytes, kAgeParts>;

struct Frame {
  std::string file, function;
  int line = 0;
  bool native = false;  // file is then the source where it is known, otherwise the module
  bool user = false;    // neither a library nor the standard library nor native
};

/// A place that allocates: innermost frame first.
struct Site {
  std::vector<Frame> frames;
  Bytes total;  // ever allocated here, estimated
  double total_blocks = 0;
  Bytes freed;
  int64_t row = 0;  // of the run file
};

/// What is alive of a site at a mark.
struct SiteState {
  int site = 0;
  Bytes bytes;
  double blocks = 0;
  Ages age{};
};

/// A moment of the loop.
struct Mark {
  double t = 0;
  std::string kind, name;
  int64_t index = 0;
  bool period = false;  // the same place of the loop as every other mark with this flag and kind
  std::optional<Bytes> rss, heap_in_use, heap_free, heap_mapped, python_arenas;
  std::optional<Bytes> tree_private_dirty, tree_pss;  // the process and its children
  int processes = 1;
  std::array<uint64_t, kCountedUnits> units{};  // counted so far
  std::vector<SiteState> sites;                 // empty: no snapshot was taken
};

struct OsPoint {
  double t = 0;
  std::optional<Bytes> rss, swap, tree_private_dirty, tree_pss;
  int processes = 1;
};

/// gc.collect and malloc_trim at a mark.
struct Probe {
  double t = 0;
  int64_t period = 0;
  Bytes rss, after_gc, after_trim;
  int64_t collected = 0;
  int64_t garbage = 0;  // objects in circles that were counted and left, because the program turned gc off
  Bytes garbage_bytes{};
};

/// A GPU, as its driver tells: totals, no places.
struct Gpu {
  int64_t device = 0;
  std::string name;
  Bytes total, used_peak;
  std::optional<Bytes> by_tree_peak;  // of the program and its children; absent: the driver did not tell
  struct Point {
    double t = 0;
    Bytes used;
    std::optional<Bytes> by_tree;
  };
  std::vector<Point> points;  // by time

  /// What can be told of is the whole device: the driver did not say what is the program's.
  bool whole() const { return !by_tree_peak; }
  std::vector<std::pair<double, double>> told() const {  // (t, bytes): the program's, or the whole device's
    std::vector<std::pair<double, double>> all;
    for (const Point& p : points)
      if (whole() || p.by_tree) all.emplace_back(p.t, double((whole() ? p.used : *p.by_tree).value));
    return all;
  }
};

/// What a framework's pool had of a device in the process that the evidence is of.
struct Pool {
  std::string space, name;  // "gpu:0"; "torch", "jax", "tensorflow"
  struct Point {
    double t = 0;
    Bytes in_use;
    std::optional<Bytes> reserved, peak, inactive_split, largest_free, limit;
    int64_t retries = 0, ooms = 0;
  };
  std::vector<Point> points;  // by time
};

struct Limit {
  std::string name;  // "cgroup", "machine", "RLIMIT_AS", "RLIMIT_DATA", "--limit"
  Bytes bytes;
};

/// Mappings of one kind, all together.
struct Mapped {
  double t = 0;
  Bytes mapped, resident, private_dirty, pss;
};

/// A process of the tree, and what it held of each memory space.
struct SeenProcess {
  int64_t row = 0;              // of the run file: pids come again
  int64_t pid = 0, parent = 0;  // parent: a pid
  std::string name, command;    // command: empty where it was not stored
  double start = 0;
  std::optional<double> end;
  std::string seen;  // "inside", "outside", "not"
  struct Point {
    double t = 0;
    std::optional<Bytes> resident, private_dirty, in_use;
  };
  std::map<std::string, std::vector<Point>>
      spaces;  // "host", "shared", "gpu:0": by time. Resident memory as the system tells it is host and shared together
  struct Pages {
    double t = 0;
    Bytes resident, anonymous;                // anonymous: of resident, without a file behind it, its parent's too
    std::optional<Bytes> private_dirty, pss;  // absent: not asked then
  };
  std::vector<Pages> pages{};                             // by time
  std::map<std::string, std::vector<Mapped>> mappings{};  // by kind (docs/runfile.md), each by time
};

struct Evidence {
  std::string command;
  std::string space = "host";  // of which memory the marks tell: devices.h makes evidence of a GPU's
  std::string blind;           // why nothing inside the program was seen; empty: it was
  bool blind_partly = false;   // that holds for some of its processes only
  double seconds = 0;          // of the run
  bool ended = true;           // false: killed, or still running
  std::optional<int> exit_code, signal;
  Bytes peak_rss, baseline_rss;  // baseline: when the first phase began
  Bytes sampled_peak;  // the highest that was sampled; peak_rss is the kernel's high-water mark where that was told
  std::optional<Bytes>
      tree_peak;            // of the process and its children together, shared pages once: the highest that was sampled
  bool probes_off = false;  // gc.collect and malloc_trim were not to be called
  std::vector<Limit> limits;
  std::vector<Mark> marks;  // of the main process, in order
  std::vector<OsPoint> os;  // by time
  std::vector<Site> sites;
  std::vector<Probe> probes;
  std::vector<std::string> notes;  // of the agent, in order, each a JSON object: python/millpond/inject/NOTES.md
  std::map<std::string, std::vector<std::pair<double, double>>> counters;  // by name: (t, value), from the notes
  double sampling_interval = 0;  // T: a sum of n small samples is known to about 1 / sqrt(n)
  int64_t dropped = 0;
  std::vector<Gpu> gpus;
  std::vector<Pool> pools;  // of this process; in evidence of a device: the one that it is of
  std::vector<std::pair<double, Bytes>>
      loose_files;           // in shared memory (tmpfs), made during the run, that no process has mapped: by time
  std::string growing_file;  // of these, the one that grew most
  double agent_seconds = 0;  // as the agent itself measured, in its last words
  std::vector<SeenProcess>
      processes;        // all; without a row (0), the last: those together that have no series of their own
  int64_t process = 0;  // the row of the one that marks, sites and notes are of; 0: none is named
};

/// How often the resident memory of the program was looked at.
int64_t looks(const Evidence& evidence);

}  // namespace millpond::verdict
