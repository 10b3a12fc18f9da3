// exact: a search for the smallest arena, in the spirit of MiniMalloc. It looks at canonical placements only: those
// that come about when items are placed in the order of their offsets, each as low as the items below it allow. Any
// other placement becomes a canonical one of the same size or smaller when its items are pushed down, so no answer is
// missed.
// Memory: up to 8 n^2 bytes for n items that are connected in time, and never more than 32 MB. All of it is given back
// before the function returns.
#pragma once
#include <vector>

#include "plan/budget.h"
#include "plan/items.h"

namespace millpond::plan {

struct ExactResult {
  bool improved = false;
  bool proven = false;  // No placement is smaller than the one that `offsets` holds now.
};

/// Looks for offsets below the ones given (which must be a valid placement), down to `bound`, until the budget ends.
ExactResult improve_exactly(const Items& items, int64_t bound, Budget& budget, std::vector<int64_t>& offsets);

}  // namespace millpond::plan
