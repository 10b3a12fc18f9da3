#include "plan/search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace millpond::plan {

Search::Search(std::vector<Item> items) : items_(std::move(items)) {
  std::map<std::tuple<int64_t, int64_t, int, int>, int> seen;
  for (int i = 0; i < int(items_.size()); ++i) {
    const Item& item = items_[i];
    twin_.push_back(-1);
    if (item.fixed >= 0) continue;
    const auto [at, first] = seen.try_emplace({item.size, item.alignment, item.first, item.last}, i);
    if (!first) twin_[i] = std::exchange(at->second, i);
  }
  find_sections();
}

// A section is a largest set of items alive at once: a birth that follows a death opens a new one. Any other moment
// holds a part of a section's items, so that its bound says nothing more.
void Search::find_sections() {
  struct Event {
    int call;
    bool birth;
    int item;
  };
  std::vector<Event> events;
  for (int i = 0; i < int(items_.size()); ++i) {
    events.push_back({items_[i].first, true, i});
    events.push_back({items_[i].last + 1, false, i});
  }
  std::ranges::sort(
      events, [](const Event& a, const Event& b) { return a.call != b.call ? a.call < b.call : a.birth < b.birth; });
  from_.assign(items_.size(), 0);
  to_.assign(items_.size(), 0);
  int section = 0;
  bool died = false;
  for (const Event& e : events) {
    if (e.birth && died) ++section, died = false;
    if (e.birth)
      from_[e.item] = section;
    else
      to_[e.item] = section, died = true;
  }
  remaining_.assign(size_t(section) + 1, 0);
  next_.assign(size_t(section) + 2, 0);
  crossing_.assign(size_t(section) + 1, 0);
}

Outcome Search::run(int64_t capacity, int64_t steps, Budget& budget) {
  capacity_ = capacity;
  steps_ = steps;
  budget_ = &budget;
  const size_t n = items_.size();
  levels_.resize(2 * n + 2);  // a level for each item and for each split, which leaves fewer in every part
  at_.assign(n, 0);
  placed_.assign(n, false);
  std::ranges::fill(remaining_, 0);
  std::vector<Open>& open = levels_[0].open;
  open.clear();
  for (size_t i = 0; i < n; ++i) {
    open.push_back({std::max<int64_t>(items_[i].fixed, 0), int(i)});
    for (int s = from_[i]; s <= to_[i]; ++s) remaining_[s] += items_[i].size;
  }
  std::ranges::sort(open, std::less<>{});
  const Outcome outcome = descend(0, {0, -1});
  levels_ = {};
  return outcome;
}

int Search::next_open(int section) {
  while (next_[section] != section) section = next_[section] = next_[next_[section]];
  return section;
}

// Nothing unplaced in a section can begin below the lowest item there, so that + all that remains must fit. Items come
// by rising offset: the first to reach a section is its lowest, and the section is passed over from then on.
bool Search::may_fit(const Level& level, int64_t lowest) {
  for (int s = 0; s <= int(remaining_.size()); ++s) next_[s] = s;
  for (const Open& o : level.open) {
    const Item& item = items_[o.item];
    if (item.fixed >= 0 && item.fixed < lowest) return false;  // its turn is over
    const int64_t begin = std::max(o.at, lowest);  // not aligned again: it must rise with the order of `open`
    if (begin + item.size > capacity_) return false;
    for (int s = next_open(from_[o.item]); s <= to_[o.item]; s = next_open(s)) {
      if (begin + remaining_[s] > capacity_) return false;
      next_[s] = s + 1;
    }
  }
  return true;
}

// An item may come next unless another would fit whole beneath it: that other, placed first, leaves a placement no
// higher. Equal offsets come in the order of the items.
void Search::collect(Level& level, Open below) const {
  int64_t limit = std::numeric_limits<int64_t>::max(), reserved = limit;
  for (const Open& o : level.open) {
    if (items_[o.item].fixed >= 0)
      reserved = std::min(reserved, o.at);
    else
      limit = std::min(limit, o.at + items_[o.item].size);
  }
  level.candidates.clear();
  for (const Open& o : level.open) {
    if (o.at >= limit || o.at > reserved) break;
    if (o < below || (twin_[o.item] >= 0 && !placed_[twin_[o.item]])) continue;
    level.candidates.push_back(o);
  }
}

// Lifts every unplaced item that meets the placed one onto its top; false when that lifts a reservation.
bool Search::put(const Level& level, Open next, Level& above) {
  const Item& placed = items_[next.item];
  const int64_t top = next.at + placed.size;
  above.open.clear();
  lifted_.clear();
  for (const Open& o : level.open) {
    const Item& item = items_[o.item];
    if (o.item == next.item) continue;
    if (o.at >= top || !item.meets(placed)) {
      above.open.push_back(o);
    } else {
      if (item.fixed >= 0) return false;
      lifted_.push_back({align_up(top, item.alignment), o.item});
    }
  }
  std::ranges::sort(lifted_, std::less<>{});
  const auto middle = above.open.insert(above.open.end(), lifted_.begin(), lifted_.end());
  std::inplace_merge(above.open.begin(), middle, above.open.end());
  return true;
}

void Search::mark(const Open& o, bool placed) {
  placed_[o.item] = placed;
  const int64_t change = placed ? -items_[o.item].size : items_[o.item].size;
  for (int s = from_[o.item]; s <= to_[o.item]; ++s) remaining_[s] += change;
}

// Where no unplaced item reaches over a boundary between sections, the two sides no longer matter to each other.
void Search::find_parts(Level& level) {
  std::ranges::fill(crossing_, 0);
  int first = int(remaining_.size()), last = 0;
  for (const Open& o : level.open) {
    ++crossing_[from_[o.item]], --crossing_[to_[o.item]];
    first = std::min(first, from_[o.item]), last = std::max(last, to_[o.item]);
  }
  level.last_sections.clear();
  for (int s = first, across = 0; s <= last; ++s)
    if ((across += crossing_[s]) == 0 && (remaining_[s] > 0 || s == last)) level.last_sections.push_back(s);
}

// Each part alone: when one has no placement, how the others were placed is not to blame, and nothing is tried again.
Outcome Search::descend_in_parts(size_t depth, Open below) {
  const Level& level = levels_[depth];
  for (size_t part = 0; part < level.last_sections.size(); ++part) {
    const int begin = part ? level.last_sections[part - 1] + 1 : 0, end = level.last_sections[part];
    std::vector<Open>& open = levels_[depth + 1].open;
    open.clear();
    for (const Open& o : level.open)
      if (begin <= from_[o.item] && to_[o.item] <= end) open.push_back(o);
    const Outcome outcome = descend(depth + 1, below);
    if (outcome == Outcome::kFound) continue;
    for (const Open& o : level.open)
      if (to_[o.item] < begin) mark(o, false);
    return outcome;
  }
  return Outcome::kFound;
}

Outcome Search::descend(size_t depth, Open below) {
  Level& level = levels_[depth];
  if (level.open.empty()) return Outcome::kFound;
  const int64_t work = 5 * int64_t(level.open.size()) + 2 * int64_t(remaining_.size());
  steps_ -= work;
  budget_->spend(work);
  if (steps_ <= 0 || budget_->exhausted()) return Outcome::kStopped;
  if (!may_fit(level, below.at)) return Outcome::kNone;
  find_parts(level);
  if (level.last_sections.size() > 1) return descend_in_parts(depth, below);
  collect(level, below);
  for (const Open& next : level.candidates) {
    if (!put(level, next, levels_[depth + 1])) continue;
    at_[next.item] = next.at;
    mark(next, true);
    const Outcome outcome = descend(depth + 1, next);
    if (outcome != Outcome::kNone) return outcome;
    mark(next, false);
  }
  return Outcome::kNone;
}

}  // namespace millpond::plan
