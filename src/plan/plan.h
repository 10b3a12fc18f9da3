// plan: sizes and lifetimes in, offsets out. A pure function: no tensors, no devices, no clock but its own deadline.
//
//   offset
//     ^        +---------+
//     |   +----+    B    |        A buffer is a rectangle: its bytes high, its lifetime wide. Two whose lifetimes
//     |   | A  +----+----+--+     meet may not share bytes. The arena is the highest top; it can be no smaller than
//     |   |    |    |  C    |     the largest sum of sizes alive at one moment (the lower bound).
//     +---+----+----+-------+--> call
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "millpond/bytes.h"

namespace millpond::plan {

struct BufferId {
  int32_t value = -1;
  auto operator<=>(const BufferId&) const = default;
};

/// Calls are numbered from 0; a buffer is alive from `first` to `last`, both included. A buffer of no bytes is legal.
struct Buffer {
  std::string name;  // the account it is charged to, e.g. "activations/conv1"
  Bytes size;
  int first = 0;
  int last = 0;
  Bytes alignment{64};                         // a power of two
  std::optional<Bytes> offset = std::nullopt;  // fixed reservation: must lie exactly here
  // Must-alias: lies `inside_offset` bytes into that buffer, and wholly within it: a view, an operation in place, a
  // part of a concatenation. A chain of these ends in a root; counted from there the offset is a multiple of
  // `alignment`, so a view at an odd place needs a smaller alignment than the default. The root and all that lies
  // inside it live together, from the first call of any of them to the last of any.
  std::optional<BufferId> inside = std::nullopt;
  Bytes inside_offset{0};
  bool escapes = false;  // still wanted after the last call: its bytes are never reused from `first` on
};

struct Problem {
  std::vector<Buffer> buffers;
  int calls = 0;
};

/// What is tried beyond one greedy pass. Search is metered in steps of work that take up to `deadline_seconds` on a
/// slow processor, so that the same problem gets the same plan on a busy machine too; the clock ends it only at ten
/// times that.
struct Options {
  double deadline_seconds = 0.2;  // for the search; the greedy portfolio always runs
  bool exact = true;              // search exactly when greedy leaves a gap
  bool climb = true;              // and spend what is left of the deadline on better orders
  bool portfolio = true;          // false: only decreasing size, for comparison
};

struct Plan {
  std::vector<Bytes> offsets;  // of each buffer, in the order of the problem
  Bytes size;                  // of the arena, a multiple of the smallest alignment
  Bytes lower_bound;           // no plan can be smaller (for this order of calls)
  int peak_call = 0;           // where the lower bound is reached
  bool optimal = false;        // the bound is reached, or the exact search has shown that nothing smaller exists
  double seconds = 0;
  std::string method;  // which ordering and fit, "exact" or "climb"
  double gap() const { return lower_bound.value ? double((size - lower_bound).value) / double(lower_bound.value) : 0; }
};

/// Throws Error(kMemory) when fixed reservations contradict each other, Error(kUsage) on a malformed problem.
Plan solve(const Problem& problem, const Options& options = {});

/// The largest sum of sizes alive at one call, and where; no less than the top of any fixed reservation. Sizes count
/// rounded up to the smallest alignment of the problem: no byte between can be used by another buffer.
Bytes lower_bound(const Problem& problem, int* peak_call = nullptr);

/// Written apart from the solver and sharing no code with it: replays the plan and returns one sentence for each
/// violation (overlap, misalignment, moved reservation, alias out of place, arena too small). Empty: the plan holds.
std::vector<std::string> violations(const Problem& problem, const Plan& plan);

/// "115.2 MiB, lower bound 115.2 MiB, gap 0.00 %, by size"
std::string to_string(const Plan& plan);

}  // namespace millpond::plan
