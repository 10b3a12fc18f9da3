#include "plan/greedy.h"

#include <algorithm>
#include <array>

namespace millpond::plan {
namespace {

struct Placed {
  int64_t begin, end;
  int first, last;
};

class Shelf {
 public:
  explicit Shelf(size_t items) { placed_.reserve(items); }

  void put(const Item& item, int64_t at) {
    const auto where = std::ranges::upper_bound(placed_, at, {}, &Placed::begin);
    placed_.insert(where, {at, at + item.size, item.first, item.last});
  }

  // Gaps are what lies between the tops so far and the next item that meets this one in time.
  int64_t find(const Item& item, Fit fit) const {
    int64_t top = 0, best = -1, least = kNoCeiling;
    for (const Placed& p : placed_) {
      if (p.last < item.first || item.last < p.first) continue;
      const int64_t at = align_up(top, item.alignment);
      const int64_t spare = p.begin - at - item.size;
      if (spare >= 0 && spare < least) {
        best = at, least = spare;
        if (fit == Fit::kLowest || spare == 0) return best;
      }
      top = std::max(top, p.end);
    }
    return best >= 0 ? best : align_up(top, item.alignment);
  }

 private:
  std::vector<Placed> placed_;  // by begin
};

// For each call the bytes alive, then the largest of them within any lifetime in constant time.
class SectionTotals {
 public:
  explicit SectionTotals(const Items& items) {
    std::vector<int64_t> live(size_t(items.calls) + 1, 0);
    for (const Item& item : items.list) live[item.first] += item.size, live[item.last + 1] -= item.size;
    for (size_t i = 1; i < live.size(); ++i) live[i] += live[i - 1];
    levels_.push_back(std::move(live));
    for (size_t width = 1; 2 * width <= levels_[0].size(); width *= 2) {
      const std::vector<int64_t>& below = levels_.back();
      std::vector<int64_t> level(below.size() - width);
      for (size_t i = 0; i < level.size(); ++i) level[i] = std::max(below[i], below[i + width]);
      levels_.push_back(std::move(level));
    }
  }
  int64_t most(int first, int last) const {
    const int level = 31 - __builtin_clz(unsigned(last - first + 1));
    return std::max(levels_[level][first], levels_[level][last + 1 - (1 << level)]);
  }

 private:
  std::vector<std::vector<int64_t>> levels_;
};

// An item conflicts with all that are not dead before it is born nor born after it has died: two counts, no pairs.
std::vector<double> conflicts(const Items& items) {
  std::vector<int> born(size_t(items.calls) + 1, 0), dead(size_t(items.calls) + 1, 0);  // before call i
  for (const Item& item : items.list) ++born[item.first + 1], ++dead[item.last + 1];
  for (size_t i = 1; i < born.size(); ++i) born[i] += born[i - 1], dead[i] += dead[i - 1];
  std::vector<double> result;
  for (const Item& item : items.list) result.push_back(born[item.last + 1] - dead[item.first]);
  return result;
}

}  // namespace

std::vector<int64_t> place(const Items& items, const std::vector<int>& order, Fit fit, int64_t ceiling) {
  std::vector<int64_t> offsets(items.list.size(), 0);
  Shelf shelf(items.list.size());
  for (size_t i = 0; i < items.list.size(); ++i) {
    const Item& item = items.list[i];
    if (item.fixed < 0) continue;
    offsets[i] = item.fixed;
    if (item.size > 0) shelf.put(item, item.fixed);
  }
  for (int i : order) {
    const int64_t at = shelf.find(items.list[i], fit);
    if (at + items.list[i].size > ceiling) return {};
    offsets[i] = at;
    shelf.put(items.list[i], at);
  }
  return offsets;
}

Order order_by(const Items& items, int which) {
  static constexpr std::array<std::string_view, kOrders> kNames = {"size",      "section total", "duration", "area",
                                                                   "conflicts", "stack",         "peak"};
  const size_t n = items.list.size();
  std::vector<double> key(n);
  if (which == 1 || which == 5) {
    const SectionTotals totals(items);
    for (size_t i = 0; i < n; ++i) key[i] = double(totals.most(items.list[i].first, items.list[i].last));
  } else if (which == 4) {
    key = conflicts(items);
  } else if (which == 6) {
    int peak = 0;
    lower_bound(items, &peak);
    for (size_t i = 0; i < n; ++i) {
      const Item& item = items.list[i];
      const bool there = item.first <= peak && peak <= item.last;
      key[i] = there ? 1e18 + 1e6 * item.duration() : double(item.size);  // 1e18: more than any size
    }
  } else {
    for (size_t i = 0; i < n; ++i) {
      const double size = double(items.list[i].size), duration = items.list[i].duration();
      key[i] = which == 0 ? size : which == 2 ? duration : size * duration;
    }
  }
  Order order{kNames[which], {}};
  for (size_t i = 0; i < n; ++i)
    if (items.list[i].movable()) order.items.push_back(int(i));
  std::ranges::sort(order.items, [&](int a, int b) {
    const Item &x = items.list[a], &y = items.list[b];
    if (key[a] != key[b]) return key[a] > key[b];
    if (which == 5 && x.last != y.last) return x.last > y.last;
    if (x.duration() != y.duration()) return x.duration() > y.duration();
    if (x.size != y.size) return x.size > y.size;
    return x.first != y.first ? x.first < y.first : a < b;
  });
  return order;
}

}  // namespace millpond::plan
