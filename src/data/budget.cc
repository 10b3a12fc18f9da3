#include "data/budget.h"

#include <algorithm>

#include "base/format.h"
#include "millpond/error.h"

namespace millpond::data {

std::vector<Bytes> divide(Bytes budget, std::span<const Claim> claims, bool sure) {
  Bytes working, least;
  for (const Claim& c : claims) {
    working += c.working;
    if (c.holds) least += c.least;
  }
  if (working + least > budget) {
    Error e(Code::kMemory, format("the data pipeline needs at least {}, but its budget is {} ({} short)",
                                  working + least, budget, working + least - budget));
    for (const Claim& c : claims)
      if (const Bytes all = c.working + (c.holds ? c.least : Bytes{}); all.value > 0) e.add(c.stage, format("{}", all));
    throw std::move(e).hint("give it a larger budget, or make batches smaller");
  }
  if (!sure) working = std::max(working, Bytes{budget.value / 4});
  const Bytes room = std::max(budget - working, least);

  // Those that ask, at least one element each; the others want all they can get.
  std::vector<Bytes> ceilings(claims.size());
  Bytes asked, floor_of_others;
  int64_t others = 0;
  for (const Claim& c : claims) {
    if (!c.holds) continue;
    if (c.ask.value > 0)
      asked += std::max(c.ask, c.least);
    else
      floor_of_others += c.least, ++others;
  }
  const Bytes for_asking = std::min(asked, room - floor_of_others);
  Bytes given;
  for (size_t i = 0; i < claims.size(); ++i) {
    const Claim& c = claims[i];
    if (!c.holds || c.ask.value == 0) continue;
    const Bytes wanted = std::max(c.ask, c.least);
    ceilings[i] =
        asked <= for_asking
            ? wanted
            : std::max(c.least, Bytes{int64_t(double(wanted.value) * double(for_asking.value) / double(asked.value))});
    given += ceilings[i];
  }
  // Cutting in proportion may have left some at their floor and the sum too large: take the difference from the
  // largest.
  while (given > room - floor_of_others) {
    size_t most = claims.size();
    for (size_t i = 0; i < claims.size(); ++i)
      if (claims[i].holds && claims[i].ask.value > 0 && ceilings[i] > claims[i].least &&
          (most == claims.size() || ceilings[i] > ceilings[most]))
        most = i;
    if (most == claims.size()) break;
    const Bytes cut = std::min(given - (room - floor_of_others), ceilings[most] - claims[most].least);
    ceilings[most] -= cut;
    given -= cut;
  }
  // Even shares of the rest, floors first served.
  Bytes left = room - given;
  std::vector<size_t> order;
  for (size_t i = 0; i < claims.size(); ++i)
    if (claims[i].holds && claims[i].ask.value == 0) order.push_back(i);
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](size_t i) { return claims[i].least; });
  for (const size_t i : order) {
    ceilings[i] = std::max(claims[i].least, Bytes{std::max<int64_t>(0, left.value) / others});
    left -= ceilings[i];
    --others;
  }
  return ceilings;
}

}  // namespace millpond::data
