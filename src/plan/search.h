// Search: depth first over the canonical placements of items that are connected in time (exact.h says why those
// suffice). Memory, during run(): the unplaced items at each level of the search, so 8 n^2 bytes for n items when it
// gets to the bottom.
#pragma once
#include <vector>

#include "plan/budget.h"
#include "plan/items.h"

namespace millpond::plan {

enum class Outcome { kFound, kNone, kStopped };  // stopped: out of steps or budget, nothing known

class Search {
 public:
  /// `items` in the order of preference among equals; it may hold no item of size zero.
  explicit Search(std::vector<Item> items);

  /// A placement whose top is at most `capacity`, in at most `steps` of the budget's work.
  Outcome run(int64_t capacity, int64_t steps, Budget& budget);
  /// Of the last kFound, in the order of the items.
  const std::vector<int64_t>& offsets() const { return at_; }

 private:
  struct Open {  // an item not yet placed
    int64_t at;  // the aligned top of all placed ones that it meets, or its reservation
    int item;
    bool operator<(const Open& o) const { return at != o.at ? at < o.at : item < o.item; }
  };
  struct Level {
    std::vector<Open> open;  // sorted
    std::vector<Open> candidates;
    std::vector<int> last_sections;  // of each part that nothing unplaced connects with the next; one: all is connected
  };

  void find_sections();
  Outcome descend(size_t depth, Open below);
  Outcome descend_in_parts(size_t depth, Open below);
  void find_parts(Level& level);
  void mark(const Open& o, bool placed);
  bool may_fit(const Level& level, int64_t lowest);
  void collect(Level& level, Open below) const;
  bool put(const Level& level, Open next, Level& above);
  int next_open(int section);

  std::vector<Item> items_;
  std::vector<int> twin_;           // an equal item that goes first, or -1: two orders of equals are one placement
  std::vector<int> from_, to_;      // sections of an item, both included
  std::vector<int64_t> remaining_;  // bytes not yet placed in each section
  std::vector<int64_t> at_;
  std::vector<bool> placed_;
  std::vector<Level> levels_;
  std::vector<int> next_;      // scratch of may_fit: union-find over sections
  std::vector<Open> lifted_;   // scratch of put
  std::vector<int> crossing_;  // scratch of find_parts
  int64_t capacity_ = 0;
  int64_t steps_ = 0;
  Budget* budget_ = nullptr;  // borrowed during run
};

}  // namespace millpond::plan
