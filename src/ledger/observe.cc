#include <algorithm>

#include "ledger/explain.h"

namespace millpond::ledger {

Observation observe(const Snapshot& snapshot) {
  Observation o;
  const std::vector<Mapping> list = mappings();
  o.groups = grouped(list);
  o.allocator = heap_state();
  for (const Mapping& m : list) o.resident += m.resident;

  // By address; where charges overlap, the byte belongs to the one that begins first.
  std::vector<const ChargedRange*> ranges;
  for (const ChargedRange& r : snapshot.ranges) ranges.push_back(&r);
  std::ranges::sort(ranges, {}, [](const ChargedRange* r) { return reinterpret_cast<uint64_t>(r->begin); });
  uint64_t seen = 0;
  for (const ChargedRange* r : ranges) {
    RangeResidence residence{.account = r->account, .charged = r->size, .in_heap = {}, .in_anonymous = {}};
    const auto begin = std::max(seen, reinterpret_cast<uint64_t>(r->begin));
    const auto end = reinterpret_cast<uint64_t>(r->begin) + uint64_t(r->size.value);
    for (const Mapping& m : list) {
      if (m.kind != MappingKind::kHeap && m.kind != MappingKind::kAnonymous) continue;
      const uint64_t from = std::max(begin, m.begin), to = std::min(end, m.end);
      if (from >= to) continue;
      const Bytes in =
          std::min(m.resident, resident_in(reinterpret_cast<const void*>(from), Bytes{int64_t(to - from)}));
      (m.kind == MappingKind::kHeap ? residence.in_heap : residence.in_anonymous) += in;
    }
    seen = std::max(seen, end);
    o.ranges.push_back(std::move(residence));
  }
  return o;
}

}  // namespace millpond::ledger
