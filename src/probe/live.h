// The sampled blocks that are alive: the table of shared.h, without locks, and what a free needs to pass by it.
//
//   free(p) -> filter (filter.h): almost always it says that p is no sampled block
//           -> index: from the home of p, no further than an entry of that home was ever put; it names the entry
//
// An entry's place is claimed with address 1, filled, and published with its address; it is taken back the same way.
// Memory: 128 KiB for the index and 64 KiB for how far to look, besides the table.
#pragma once
#include "probe/filter.h"
#include "probe/shared.h"

namespace millpond::probe {

struct Weight {
  uint64_t bytes;  // 0: not sampled (a sampled block of no bytes stands for none, and is not recorded either)
  float blocks;
};

namespace live {

// False: the table is full around its place, and the block is not recorded. An entry that is there already (its free
// was not seen) is replaced.
bool add(const void* p, uint64_t size, Weight weight, uint32_t stack, uint32_t born_ms, LiveKind kind);
// Takes the entry out; false: there is none. Before the memory is given back: after that another thread may get it.
bool remove(const void* p, Live* out = nullptr);
// Puts back what remove took out, as if that had not happened.
void put_back(const Live& entry);

// Entry `number` of the table as it is now; false: none is there, or it is being given to another block: it counts only
// if its address is the same before and after.
bool read(uint32_t number, Live& entry);

// The number of the first entry from that one on which may be there; kLiveSlots: none.
uint32_t next(uint32_t from);

uint64_t count();
inline uint32_t size_class(uint64_t size) {
  const uint32_t log2 = 63 - uint32_t(__builtin_clzll(size | 1));
  return log2 < 5 ? 0 : log2 - 4 < kSizeClasses ? log2 - 4 : kSizeClasses - 1;
}
void forget();  // in a child

}  // namespace live
}  // namespace millpond::probe
