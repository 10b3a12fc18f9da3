// climb: better orders for the greedy placement, found by moving an item that touches the top to an earlier turn.
// Costs one greedy pass for each move, no memory beyond two orders.
#pragma once
#include <vector>

#include "plan/budget.h"
#include "plan/greedy.h"

namespace millpond::plan {

/// Begins with `order`; returns true when it found offsets below the ones given, and then replaces them.
bool climb(const Items& items, std::vector<int> order, Fit fit, int64_t bound, Budget& budget,
           std::vector<int64_t>& offsets);

}  // namespace millpond::plan
