#include "plan/climb.h"

#include <algorithm>

namespace millpond::plan {
namespace {

// The state of a linear congruential generator (Knuth's MMIX): the same moves in every run, on every machine.
struct Dice {
  uint64_t state = 1;
  size_t below(size_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return size_t((state >> 33) % n);
  }
};

}  // namespace

bool climb(const Items& items, std::vector<int> order, Fit fit, int64_t bound, Budget& budget,
           std::vector<int64_t>& offsets) {
  if (order.size() < 2) return false;
  const int64_t n = int64_t(order.size()), pass = n * n / 16 + 20 * n;  // most passes end early, at the ceiling
  const int64_t given = arena_size(items, offsets);
  int64_t best = given;
  if (pass > budget.left()) return false;
  std::vector<int64_t> here = place(items, order, fit);
  int64_t top = arena_size(items, here);
  Dice dice;
  for (budget.spend(pass); best > bound && !budget.exhausted(); budget.spend(pass)) {
    std::vector<size_t> turns;  // of the items that touch the top
    for (size_t turn = 1; turn < order.size(); ++turn)
      if (here[order[turn]] + items.list[order[turn]].size > top - items.unit) turns.push_back(turn);
    if (turns.empty()) return best < given;
    const size_t from = turns[dice.below(turns.size())], to = dice.below(from);
    std::rotate(order.begin() + to, order.begin() + from, order.begin() + from + 1);
    std::vector<int64_t> next = place(items, order, fit, top);
    if (next.empty()) {
      std::rotate(order.begin() + to, order.begin() + to + 1, order.begin() + from + 1);
      continue;
    }
    here = std::move(next);
    top = arena_size(items, here);
    if (top < best) best = top, offsets = here;
  }
  return best < given;
}

}  // namespace millpond::plan
