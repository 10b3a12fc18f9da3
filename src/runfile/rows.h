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
constexpr int kMinorVersion = 0;
constexpr int32_t kApplicationId = 0x504f4e44;  // "POND", in the header of the file

struct RowId {
  int64_t value = 0;  // 0: none
  auto operator<=>(const RowId&) const = default;
};

using Meta = std::map<std::string, std::string>;

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

}  // namespace millpond::runfile
