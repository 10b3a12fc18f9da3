// Room for Python's small objects that are sampled: 65,536 cells of 512 bytes in a mapping of their own, of which only
// used ones are resident. They must be malloc's, so that its hooks see their end (python_allocators.cc), but not lie in
// its heap: a block that stays there for long keeps the allocator from giving back all that lies below it, and then the
// program would hold memory because it is watched.
//
// free and realloc tell a cell by its address. They look only at blocks for which live::may_hold is true, so it must be
// true of every cell in use: a cell that is not recorded after all, or that a forked child inherits, is marked for
// good.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace millpond::probe::cells {

inline constexpr size_t kBytes = 512;         // what pymalloc calls small
inline constexpr size_t kAsked = kBytes + 1;  // a block of malloc of this size, while me.cell is set, is a cell

void* take();  // zero; null: all are used
void give(void* cell);
bool holds(const void* block);
void each(void (*call)(const void* cell));  // that is in use
void forget();                              // in a child: whoever held the lock is not there

}  // namespace millpond::probe::cells
