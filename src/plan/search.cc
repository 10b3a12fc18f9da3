#include "plan/search.h"

#include <algorithm>
#include <limits>

namespace millpond::plan {

Search::Search(std::vector<Item> items) : items_(std::move(items)), twin_(items_.size(), -1) {
  for (size_t i = 0; i < items_.size(); ++i)
    for (size_t j = i; j-- > 0 && twin_[i] < 0;) {
      const Item &a = items_[i], &b = items_[j];
      if (a.fixed < 0 && b.fixed < 0 && a.size == b.size && a.alignment == b.alignment && a.first == b.first && a.last == b.last)
        twin_[i] = int(j);
    }
  levels_.resize(items_.size() + 1);
  find_sections();
}

// A section is a largest set of items alive at once: a birth that follows a death opens a new one. Any other moment holds
// a part of a section's items, so that its bound says nothing more.
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
  std::ranges::sort(events, [](const Event& a, const Event& b) { return a.call != b.call ? a.call < b.call : a.birth < b.birth; });
  from_.assign(items_.size(), 0);
  to_.assign(items_.size(), 0);
  int section = 0;
  bool died = false;
  for (const Event& e : events) {
    if (e.birth && died) ++section, died = false;
    if (e.birth) from_[e.item] = section;
    else to_[e.item] = section, died = true;
  }
  remaining_.assign(size_t(section) + 1, 0);
  next_.assign(size_t(section) + 2, 0);
}

Outcome Search::run(int64_t capacity, int64_t steps, Budget& budget) {
  capacity_ = capacity;
  steps_ = steps;
  budget_ = &budget;
  const size_t n = items_.size();
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
  return descend(0, {0, -1});
}

int Search::next_open(int section) {
  while (next_[section] != section) section = next_[section] = next_[next_[section]];
  return section;
}

// Nothing unplaced in a section can begin below the lowest item there, so that + all that remains must fit. Items come by
// rising offset: the first to reach a section is its lowest, and the section is passed over from then on.
bool Search::may_fit(const Level& level, int64_t lowest) {
  for (int s = 0; s <= int(remaining_.size()); ++s) next_[s] = s;
  for (const Open& o : level.open) {
    const Item& item = items_[o.item];
    if (item.fixed >= 0 && item.fixed < lowest) return false;  // its turn is over
    const int64_t begin = std::max(o.at, lowest);              // not aligned again: it must rise with the order of `open`
    if (begin + item.size > capacity_) return false;
    for (int s = next_open(from_[o.item]); s <= to_[o.item]; s = next_open(s)) {
      if (begin + remaining_[s] > capacity_) return false;
      next_[s] = s + 1;
    }
  }
  return true;
}

// An item may come next unless another would fit whole beneath it: that other, placed first, leaves a placement no higher.
// Equal offsets come in the order of the items.
void Search::collect(Level& level, Open below) const {
  int64_t limit = std::numeric_limits<int64_t>::max(), reserved = limit;
  for (const Open& o : level.open) {
    if (items_[o.item].fixed >= 0) reserved = std::min(reserved, o.at);
    else limit = std::min(limit, o.at + items_[o.item].size);
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

Outcome Search::descend(size_t depth, Open below) {
  Level& level = levels_[depth];
  if (level.open.empty()) return Outcome::kFound;
  const int64_t work = 4 * int64_t(level.open.size()) + int64_t(remaining_.size());
  steps_ -= work;
  budget_->spend(work);
  if (steps_ <= 0 || budget_->exhausted()) return Outcome::kStopped;
  if (!may_fit(level, below.at)) return Outcome::kNone;
  collect(level, below);
  for (const Open& next : level.candidates) {
    if (!put(level, next, levels_[depth + 1])) continue;
    const Item& item = items_[next.item];
    at_[next.item] = next.at;
    placed_[next.item] = true;
    for (int s = from_[next.item]; s <= to_[next.item]; ++s) remaining_[s] -= item.size;
    const Outcome outcome = descend(depth + 1, next);
    if (outcome != Outcome::kNone) return outcome;
    placed_[next.item] = false;
    for (int s = from_[next.item]; s <= to_[next.item]; ++s) remaining_[s] += item.size;
  }
  return Outcome::kNone;
}

}  // namespace millpond::plan
