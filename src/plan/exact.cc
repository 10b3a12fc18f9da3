#include "plan/exact.h"

#include <algorithm>
#include <array>
#include <memory>

#include "plan/greedy.h"
#include "plan/search.h"

namespace millpond::plan {
namespace {

// With more items a single descent of the search takes too long, and its 8 n^2 bytes are too many.
constexpr size_t kMostItems = 2000;

// Items that are connected in time, and a search over them for each of several orders of preference.
struct Part {
  std::vector<std::vector<int>> orders;
  std::vector<std::unique_ptr<Search>> searches;
};

// A part ends between two calls where no item lives on from one to the other, so each part can be placed by itself.
std::vector<std::vector<int>> parts_in_time(const Items& items) {
  std::vector<int> by_birth;
  for (size_t i = 0; i < items.list.size(); ++i)
    if (items.list[i].size > 0) by_birth.push_back(int(i));
  std::ranges::stable_sort(by_birth, {}, [&](int i) { return items.list[i].first; });
  std::vector<std::vector<int>> parts;
  int end = -1;
  for (int i : by_birth) {
    if (items.list[i].first > end) parts.emplace_back();
    parts.back().push_back(i);
    end = std::max(end, items.list[i].last);
  }
  return parts;
}

Part make_part(const Items& items, const std::vector<int>& members) {
  static constexpr std::array kWhich = {2, 1, 0};  // duration, section total, size
  Part part;
  std::vector<bool> wanted(items.list.size(), false);
  for (int i : members) wanted[i] = true;
  for (int which : kWhich) {
    std::vector<int> order = order_by(items, which).items;
    std::erase_if(order, [&](int i) { return !wanted[i]; });
    for (int i : members)
      if (items.list[i].fixed >= 0) order.push_back(i);
    std::vector<Item> list;
    for (int i : order) list.push_back(items.list[i]);
    part.searches.push_back(std::make_unique<Search>(std::move(list)));
    part.orders.push_back(std::move(order));
  }
  return part;
}

// The orders take turns, so that an order that does not get anywhere does not use up the budget. In the first round
// each has enough steps for one descent to the bottom (which takes at most 3 n^2), in every later round four times as
// many as before.
Outcome attempt(Part& part, int64_t capacity, int64_t steps, Budget& budget, std::vector<int64_t>& offsets) {
  const int64_t n = int64_t(part.orders[0].size());
  int64_t turn = std::max<int64_t>(100'000, 4 * n * n);
  while (steps > 0 && !budget.exhausted()) {
    for (size_t k = 0; k < part.searches.size() && steps > 0; ++k) {
      const int64_t before = budget.left();
      const Outcome outcome = part.searches[k]->run(capacity, std::min(turn, steps), budget);
      steps -= before - budget.left();
      if (outcome == Outcome::kFound)
        for (size_t i = 0; i < part.orders[k].size(); ++i) offsets[part.orders[k][i]] = part.searches[k]->offsets()[i];
      if (outcome != Outcome::kStopped) return outcome;
    }
    turn *= 4;
  }
  return Outcome::kStopped;
}

int64_t top_of(const Items& items, const std::vector<int>& members, const std::vector<int64_t>& offsets) {
  int64_t top = 0;
  for (int i : members) top = std::max(top, offsets[i] + items.list[i].size);
  return align_up(top, items.unit);
}

// The search first tries the bound itself, because most answers lie there. Then it tries larger and larger capacities.
// At last it asks again and again for a little less than the best that is known, until nothing is found. Returns a top
// below which this part provably cannot be placed.
int64_t improve_part(const Items& items, const std::vector<int>& members, int64_t bound, Budget& budget,
                     std::vector<int64_t>& offsets) {
  Part part = make_part(items, members);
  int64_t proven = bound;
  for (int eighths : {0, 1, 2, 4}) {
    const int64_t top = top_of(items, members, offsets);
    const int64_t capacity = align_up(bound + (top - bound) * eighths / 8, items.unit);
    if (top <= capacity || capacity < proven) continue;
    const Outcome outcome = attempt(part, capacity, budget.left() * (eighths ? 1 : 3) / 4, budget, offsets);
    if (outcome == Outcome::kFound && eighths == 0) return proven;
    if (outcome == Outcome::kNone) proven = std::max(proven, capacity + items.unit);
  }
  for (;;) {
    const int64_t top = top_of(items, members, offsets);
    if (top <= proven) return proven;
    const Outcome outcome = attempt(part, top - items.unit, budget.left() * 3 / 4, budget, offsets);
    if (outcome == Outcome::kStopped) return proven;
    if (outcome == Outcome::kNone) return top;
  }
}

}  // namespace

ExactResult improve_exactly(const Items& items, int64_t bound, Budget& budget, std::vector<int64_t>& offsets) {
  const int64_t before = arena_size(items, offsets);
  int64_t proven = bound;
  for (const std::vector<int>& members : parts_in_time(items)) {
    if (top_of(items, members, offsets) <= proven || members.size() > kMostItems || budget.exhausted()) continue;
    proven = std::max(proven, improve_part(items, members, proven, budget, offsets));
  }
  const int64_t after = arena_size(items, offsets);
  return {.improved = after < before, .proven = after <= proven};
}

}  // namespace millpond::plan
