#include <algorithm>

#include "plan/items.h"

namespace millpond::plan {

// One sweep over the calls: bytes born minus bytes that died, and the top of each reservation.
int64_t lower_bound(const Items& items, int* peak_call) {
  std::vector<int64_t> change(size_t(items.calls) + 1, 0);
  for (const Item& item : items.list) {
    change[item.first] += item.size;
    change[item.last + 1] -= item.size;
  }
  int64_t live = 0, most = 0;
  int peak = 0;
  for (int call = 0; call < items.calls; ++call)
    if ((live += change[call]) > most) most = live, peak = call;
  for (const Item& item : items.list)
    if (item.fixed >= 0 && align_up(item.fixed + item.size, items.unit) > most)
      most = align_up(item.fixed + item.size, items.unit), peak = item.first;
  if (peak_call) *peak_call = peak;
  return most;
}

Bytes lower_bound(const Problem& problem, int* peak_call) { return Bytes{lower_bound(normalise(problem), peak_call)}; }

}  // namespace millpond::plan
