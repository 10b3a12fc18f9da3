// Marks: a moment of the program with the counters of its memory, and on demand what is alive then, by call stack.
// Memory: 1.8 MiB for adding up, mapped with the first snapshot; of that only what its stacks touch.
#pragma once
#include "probe/shared.h"

namespace millpond::probe::marks {

void start();
void mark(const char* kind, const char* name, int64_t index, uint32_t flags);
uint64_t free_bytes();  // in the allocator; ~0: it does not tell
void forget();          // in a child

}  // namespace millpond::probe::marks
