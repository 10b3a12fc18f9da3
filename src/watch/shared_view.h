// SharedView: reads the shared memory of one watched process (probe/shared.h).
//
// The file is written by a stranger's process, which may have gone mad: everything is read with pread (a mapping would
// die with the file cut short), every place and size is checked, and what does not fit is left out. Costs: nothing
// between calls but the file handle.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "probe/shared.h"

namespace millpond::watch {

/// A frame before it has a name.
struct RawFrame {
  bool python = false;
  uint64_t address = 0;        // native
  std::string file, function;  // Python
  int line = 0;
};

struct RawSite {
  uint32_t stack = 0;
  uint64_t bytes = 0;
  double blocks = 0;
  uint64_t ages_kib[kAgeBins] = {};
};

struct RawMark {
  double seconds = 0;  // since the view's own start
  std::string kind, name;
  int64_t index = 0;
  uint32_t flags = 0;
  uint64_t rss = 0, heap_in_use = ~0ull, heap_free = ~0ull, heap_mapped = ~0ull, python_arenas = ~0ull;
  uint64_t units[kUnits] = {};
  std::vector<RawSite> sites;
};

struct RawModule {
  uint64_t begin = 0, end = 0, offset = 0;
  std::string path;
};

/// Who points to native blocks (probe/scan.h).
struct RawScan {
  ScanRecord record{};
  std::vector<ScanGroup> groups;
};

/// One record of the ring; exactly one of the four has content.
struct RawRecord {
  RecordKind kind{};
  uint64_t t_ns = 0;
  RawMark mark;
  std::string note;
  RawModule module;
  RawScan scan;
};

class SharedView {
 public:
  /// Nothing while the file is not ready, or when it is no file of this version.
  static std::optional<SharedView> open(const std::string& path);
  SharedView(SharedView&& o) noexcept;
  SharedView& operator=(SharedView&&) = delete;
  ~SharedView();

  /// Counters and clock, read again.
  Shared header() const;
  /// Takes the next record out of the ring; nothing when it is empty. A record that makes no sense ends in an empty
  /// ring.
  std::optional<RawRecord> next();
  std::vector<RawFrame> frames(uint32_t stack) const;
  /// Totals of a stack.
  std::optional<Stack> stack(uint32_t id) const;
  /// All stacks with their ids, those with most bytes first, at most so many.
  std::vector<std::pair<uint32_t, Stack>> largest_stacks(size_t most) const;
  /// What is alive now, by stack, largest first: for moments at which the program itself says nothing.
  std::vector<RawSite> live(uint64_t now_ns) const;

 private:
  explicit SharedView(int fd) : fd_(fd) {}
  bool read(void* to, size_t size, uint64_t at) const;
  std::string text(Text t) const;
  RawMark mark(const std::vector<char>& record) const;

  int fd_ = -1;
  mutable std::vector<Live> table_;  // scratch of live()
};

}  // namespace millpond::watch
