// sweep: places items in the order in which they are born (or, backwards, in which they die), as an allocator would
// that knows nothing of the future: in the tightest free gap among what is alive. n log n for n items, where a greedy
// pass of greedy.h looks at all pairs; for problems that are too large for those. Memory: about 100 bytes for each item
// alive.
#pragma once
#include <cstdint>
#include <vector>

#include "plan/items.h"

namespace millpond::plan {

/// Offsets of all items; empty where some are reserved, which a sweep does not look at.
std::vector<int64_t> sweep(const Items& items, bool backwards);

}  // namespace millpond::plan
