// process: what the operating system says about the memory of a process, this one or another. Plain structs from /proc,
// /sys and mallinfo2; a number that cannot be read is absent, never 0. Nothing is kept between calls.
//
// Costs: resident() and totals() some microseconds; mappings() walks every page table entry, about 1 ms for each GiB
// that is resident, and holds about 150 bytes for each mapping while the answer lives.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "millpond/bytes.h"

namespace millpond {

struct Pid {
  int value = 0;  // 0: this process
  auto operator<=>(const Pid&) const = default;
};

/// Resident bytes from /proc/<pid>/statm: the cheapest number, and on new kernels up to some hundred KiB behind.
std::optional<Bytes> resident(Pid pid = {});

/// From status and smaps_rollup. Peak is VmHWM: the most that ever was resident.
struct MemoryTotals {
  Bytes resident, peak, swap;
  Bytes anonymous, file, shared;            // parts of resident: RssAnon, RssFile, RssShmem
  std::optional<Bytes> pss, private_dirty;  // absent where smaps_rollup may not be read
  int threads = 0;
};
std::optional<MemoryTotals> totals(Pid pid = {});
/// The same from the text of the two files; `rollup` may be empty.
MemoryTotals parse_totals(std::string_view status, std::string_view rollup);

enum class MappingKind {
  kFile,         // backed by a file: code, constants, memory-mapped data
  kStatic,       // .bss of a loaded file: zero at start, so without a file behind it (known for this process only)
  kHeap,         // [heap]: the allocator's main arena
  kStack,        // of the main thread
  kThreadStack,  // holds the stack pointer of another thread
  kCode,         // executable without a file: JIT
  kKernel,       // [vdso], [vvar], [vsyscall]
  kAnonymous,    // everything else: large blocks, other arenas of the allocator, segments
};
std::string_view to_string(MappingKind kind);

struct Mapping {
  uint64_t begin = 0, end = 0;
  std::string permissions;  // "rw-p"
  std::string name;         // the path, "[heap]", or empty
  MappingKind kind = MappingKind::kAnonymous;
  Bytes resident, pss, private_dirty, swap;
};
/// Of /proc/<pid>/smaps, by address. Empty when it may not be read (another user's process) or is gone.
std::vector<Mapping> mappings(Pid pid = {});
std::vector<Mapping> parse_mappings(std::string_view smaps);

/// Sums by name: a library's code, constants and data are one line; unnamed memory goes by its kind. Largest first.
struct MappingGroup {
  std::string name;
  MappingKind kind;
  Bytes resident, private_dirty;
  int mappings = 0;
};
std::vector<MappingGroup> grouped(const std::vector<Mapping>& mappings);

/// What malloc says of itself (mallinfo2), in this process only.
struct HeapState {
  Bytes taken;          // from the system, all arenas and blocks that have a mapping of their own
  Bytes in_use;         // given to the program
  Bytes free;           // held free, resident or not
  Bytes free_resident;  // of that what is resident: free blocks without the untouched pages at the end of the heap
};
HeapState heap_state();

/// Bytes of [begin, begin + size) that are resident in this process (mincore), for memory without a file behind it.
/// Pages that lie only partly in the range count with the part that does.
Bytes resident_in(const void* begin, Bytes size);

/// How much more memory this process could take before the system, its control group or its own limit says no.
struct FreeMemory {
  Bytes bytes;                   // the least of those below that are known
  std::string limited_by;        // "machine", "cgroup /some/path", "ulimit -v"
  std::optional<Bytes> machine;  // MemAvailable
  std::optional<Bytes> cgroup;   // limit - usage + file pages that can be dropped; least over the group and its parents
  std::optional<Bytes> address_space;  // RLIMIT_AS - what is mapped
};
/// `root` stands before /proc and /sys: tests hand in a folder of their own.
FreeMemory memory_free_now(const std::string& root = "");

}  // namespace millpond
