// explain: compares what was charged with what the operating system says is resident, and says how much of it has a
// name.
//
//   explained = bytes charged to an account when they were taken (as far as they are resident)
//             + resident file-backed pages, by mapping + stacks + JIT code
//             + bytes that the allocator holds free (as far as they are resident)
//   share     = explained / resident
//
// Nothing computed by subtraction counts: what no one charged stays unexplained, and `rest` only says where it lies.
// Where it cannot be told which of two could be meant, the smaller number counts. Pure: numbers in, numbers out.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "ledger/ledger.h"

namespace millpond::ledger {

/// A charged range as it lies in memory. Parts in files, stacks or code are left out: those count as what they are.
struct RangeResidence {
  std::string account;
  Bytes charged;
  Bytes in_heap, in_anonymous;  // resident bytes in [heap], in other memory without a file
};

/// What the operating system and the allocator said at one moment.
struct Observation {
  Bytes resident;                    // of the whole process: the sum over its mappings
  std::vector<MappingGroup> groups;  // parts of it: files by name, everything else by kind
  HeapState allocator;
  std::vector<RangeResidence> ranges;  // no byte in two of them
};

struct ExplainedLine {
  std::string name;  // "arena/unet", "accounts on the heap", "file /usr/lib/libc.so.6", "stacks", ...
  Bytes claimed;     // charged, mapped, or said by the allocator
  Bytes counted;     // of that what is resident
};

struct Explanation {
  Bytes resident, explained;
  std::vector<ExplainedLine> lines;  // largest first
  std::vector<ExplainedLine> rest;   // where the unexplained lies (claimed: resident there); not counted

  double share() const { return resident.value ? double(explained.value) / double(resident.value) : 1; }
  Bytes unexplained() const { return resident - explained; }
};

Explanation explain(const Snapshot& snapshot, const Observation& observation);

/// "explained 118 MiB of 121 MiB (97.8 %); the rest is anonymous 2.10 MiB, static data 48.0 KiB"
std::string to_string(const Explanation& explanation);

/// Growth since an earlier moment has its own share: growth of the explained over growth of the resident, between 0
/// and 1. Without growth there is nothing to share, and `share` is absent.
struct Growth {
  Bytes resident, explained;
  std::optional<double> share;
};
Growth growth(const Explanation& start, const Explanation& now);

/// Looks at this process now: smaps, mallinfo2, and mincore for each charged range. Takes some milliseconds.
Observation observe(const Snapshot& snapshot);

}  // namespace millpond::ledger
