#include "plan/sweep.h"

#include <algorithm>
#include <map>
#include <set>

namespace millpond::plan {
namespace {

// The gaps between what is alive, by where they begin and by size. What lies above all is one gap without an end.
class Gaps {
 public:
  Gaps() { add(0, kEndless); }

  int64_t take(int64_t size, int64_t alignment) {
    // The tightest gap whose aligned part is large enough: it has at most alignment - 1 bytes more than the item.
    for (auto it = by_size_.lower_bound({size, 0});; ++it) {
      const auto [length, begin] = *it;
      const int64_t at = align_up(begin, alignment), end = begin + length;
      if (length != kEndless && end - at < size) continue;
      remove(begin);
      if (at > begin) add(begin, at - begin);
      if (length == kEndless)
        add(at + size, kEndless);
      else if (end > at + size)
        add(at + size, end - at - size);
      return at;
    }
  }
  void give_back(int64_t at, int64_t size) {
    auto after = gaps_.upper_bound(at);
    if (after != gaps_.end() && after->first == at + size) {
      size = after->second == kEndless ? kEndless : size + after->second;
      const int64_t gone = after->first;
      ++after;
      remove(gone);
    }
    if (after != gaps_.begin())
      if (const auto before = std::prev(after); before->first + before->second == at) {
        const int64_t begin = before->first;
        size = size == kEndless ? kEndless : size + before->second;
        remove(begin);
        at = begin;
      }
    add(at, size);
  }

 private:
  static constexpr int64_t kEndless = int64_t{1} << 60;
  void add(int64_t begin, int64_t length) { gaps_[begin] = length, by_size_.insert({length, begin}); }
  void remove(int64_t begin) {
    const auto it = gaps_.find(begin);
    by_size_.erase({it->second, begin});
    gaps_.erase(it);
  }
  std::map<int64_t, int64_t> gaps_;                // begin, length
  std::set<std::pair<int64_t, int64_t>> by_size_;  // length, begin
};

}  // namespace

std::vector<int64_t> sweep(const Items& items, bool backwards) {
  struct Moment {
    int call, item;
  };
  std::vector<Moment> births, deaths;
  for (size_t i = 0; i < items.list.size(); ++i) {
    const Item& item = items.list[i];
    if (item.fixed >= 0) return {};
    if (item.size == 0) continue;
    births.push_back({backwards ? -item.last : item.first, int(i)});
    deaths.push_back({backwards ? -item.first : item.last, int(i)});
  }
  // Among those born at once the longest lived, and then the largest, lie lowest.
  std::ranges::stable_sort(births, [&](const Moment& a, const Moment& b) {
    if (a.call != b.call) return a.call < b.call;
    const Item &x = items.list[a.item], &y = items.list[b.item];
    return x.duration() != y.duration() ? x.duration() > y.duration() : x.size > y.size;
  });
  std::ranges::stable_sort(deaths, {}, &Moment::call);
  std::vector<int64_t> offsets(items.list.size(), 0);
  Gaps gaps;
  size_t dead = 0;
  for (const Moment& born : births) {
    for (; dead < deaths.size() && deaths[dead].call < born.call; ++dead)
      gaps.give_back(offsets[deaths[dead].item], items.list[deaths[dead].item].size);
    const Item& item = items.list[born.item];
    offsets[born.item] = gaps.take(item.size, item.alignment);
  }
  return offsets;
}

}  // namespace millpond::plan
