// exact: a search over canonical placements, in the spirit of MiniMalloc. Items are placed in the order of their
// offsets, each as low as those below it allow; every placement can be pushed down into such a one, so nothing is
// missed. Memory: up to 8 n^2 bytes for n items that are connected in time, 32 MB at most, given back before it
// returns.
#pragma once
#include <vector>

#include "plan/budget.h"
#include "plan/items.h"

namespace millpond::plan {

struct ExactResult {
  bool improved = false;
  bool proven = false;  // nothing smaller than `offsets` gives now exists
};

/// Looks for offsets below the ones given (which must be a valid placement), down to `bound`, until the budget ends.
ExactResult improve_exactly(const Items& items, int64_t bound, Budget& budget, std::vector<int64_t>& offsets);

}  // namespace millpond::plan
