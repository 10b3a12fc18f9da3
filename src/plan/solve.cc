#include <algorithm>
#include <chrono>

#include "base/format.h"
#include "plan/climb.h"
#include "plan/exact.h"
#include "plan/greedy.h"
#include "plan/sweep.h"

namespace millpond::plan {
namespace {

struct Best {
  std::vector<int64_t> offsets;
  int64_t size = kNoCeiling;
  std::string method;
  std::vector<int> order;
  Fit fit = Fit::kBest;
};

// Pairs that all greedy passes of one portfolio may look at together, about a second's worth: 14 passes over 11,000
// items. Beyond, sweeps come first and what is left of the passes after them.
constexpr int64_t kMostPairs = 1'000'000'000;

Best portfolio(const Items& items, int64_t bound, bool all) {
  Best best;
  const int64_t n = int64_t(items.list.size()), pass = n * n / 2;
  int64_t passes = kMostPairs / std::max<int64_t>(1, pass);
  if (all && passes < 2 * kOrders)
    for (const bool backwards : {false, true}) {
      std::vector<int64_t> offsets = sweep(items, backwards);
      if (offsets.empty()) continue;
      const int64_t size = arena_size(items, offsets);
      if (size < best.size) best = {std::move(offsets), size, backwards ? "backward sweep" : "sweep", {}, Fit::kBest};
      if (size <= bound) return best;
    }
  for (int which = 0; which < (all ? kOrders : 1); ++which) {
    const Order order = order_by(items, which);
    for (Fit fit : {Fit::kBest, Fit::kLowest}) {
      if (!all && fit != Fit::kBest) continue;
      if (passes-- <= 0 && best.size != kNoCeiling) return best;
      const int64_t ceiling = best.size == kNoCeiling ? kNoCeiling : best.size - items.unit;
      std::vector<int64_t> offsets = place(items, order.items, fit, ceiling);
      if (offsets.empty() && !items.list.empty()) continue;
      const int64_t size = arena_size(items, offsets);
      if (size >= best.size) continue;
      best = {std::move(offsets), size, format("{}, {} fit", order.name, fit == Fit::kBest ? "best" : "lowest"),
              order.items, fit};
      if (size <= bound) return best;
    }
  }
  return best;
}

}  // namespace

Plan solve(const Problem& problem, const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  const Items items = normalise(problem);
  Plan plan;
  const int64_t bound = lower_bound(items, &plan.peak_call);
  Best best = portfolio(items, bound, options.portfolio);
  plan.optimal = best.size <= bound;
  double seconds = options.deadline_seconds;
  if (!plan.optimal && options.exact) {
    Budget budget(options.climb ? 0.7 * seconds : seconds);
    const ExactResult result = improve_exactly(items, bound, budget, best.offsets);
    if (result.improved) best.method = "exact";
    plan.optimal = result.proven;
    seconds -= budget.seconds_spent();
  }
  if (!plan.optimal && options.climb) {
    Budget budget(seconds);
    if (climb(items, best.order, best.fit, bound, budget, best.offsets)) best.method = "climb";
    plan.optimal = arena_size(items, best.offsets) <= bound;
  }
  for (size_t i = 0; i < problem.buffers.size(); ++i)
    plan.offsets.push_back(Bytes{best.offsets[items.of[i]] + items.shift[i]});
  plan.size = Bytes{arena_size(items, best.offsets)};
  plan.lower_bound = Bytes{bound};
  plan.method = std::move(best.method);
  plan.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return plan;
}

std::string to_string(const Plan& plan) {
  return format("{}, lower bound {}, gap {:.2f} %, by {}", plan.size, plan.lower_bound, 100 * plan.gap(), plan.method);
}

}  // namespace millpond::plan
