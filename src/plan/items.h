// Items: the problem as the search sees it. A buffer and all that lies inside it become one rectangle; names are gone;
// sizes are rounded up to the smallest alignment. Costs about 40 bytes for each buffer, for the time of a solve.
#pragma once
#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace millpond::plan {

struct Item {
  int64_t size = 0;  // a multiple of Items::unit
  int64_t alignment = 1;
  int64_t fixed = -1;  // its reserved offset, or -1
  int first = 0;
  int last = 0;

  bool meets(const Item& o) const { return first <= o.last && o.first <= last; }
  int duration() const { return last - first + 1; }
  bool movable() const { return fixed < 0 && size > 0; }
};

inline int64_t align_up(int64_t at, int64_t alignment) { return (at + alignment - 1) & -alignment; }

struct Items {
  std::vector<Item> list;
  std::vector<int> of;         // of[buffer]: its item
  std::vector<int64_t> shift;  // shift[buffer]: where it begins within that item
  std::vector<int> root;       // root[item]: the buffer that names it
  int64_t unit = 1;            // the smallest alignment; every offset and size is a multiple of it
  int calls = 0;
};

/// Throws Error(kUsage) on a malformed problem, Error(kMemory) when reservations contradict each other.
Items normalise(const Problem& problem);

int64_t lower_bound(const Items& items, int* peak_call);

/// The highest top, rounded up to the unit.
int64_t arena_size(const Items& items, const std::vector<int64_t>& offsets);

}  // namespace millpond::plan
