#include "ledger/explain.h"

#include <algorithm>
#include <map>

#include "base/format.h"

namespace millpond::ledger {
namespace {

Bytes resident_of(const Observation& o, MappingKind kind) {
  Bytes sum;
  for (const MappingGroup& g : o.groups)
    if (g.kind == kind) sum += g.resident;
  return sum;
}

Bytes positive(Bytes b) { return std::max(b, Bytes{}); }

// Takes from what is left of a room, so that two claims on the same memory cannot both count.
Bytes take(Bytes wanted, Bytes& room) {
  const Bytes taken = std::clamp(wanted, Bytes{}, positive(room));
  room -= taken;
  return taken;
}

}  // namespace

Explanation explain(const Snapshot& snapshot, const Observation& o) {
  Explanation e;
  e.resident = o.resident;
  const auto count = [&](std::string name, Bytes claimed, Bytes counted) {
    if (claimed.value == 0 && counted.value == 0) return;
    e.lines.push_back({std::move(name), claimed, counted});
    e.explained += counted;
  };

  Bytes heap = resident_of(o, MappingKind::kHeap), anonymous = resident_of(o, MappingKind::kAnonymous);
  std::map<std::string, ExplainedLine> by_account;
  for (const RangeResidence& r : o.ranges) {
    ExplainedLine& line = by_account[r.account];
    line.claimed += r.charged;
    line.counted += take(r.in_heap, heap) + take(r.in_anonymous, anonymous);
  }
  for (const auto& [account, line] : by_account) count(account, line.claimed, line.counted);

  // Charges without an address lie in what malloc has taken; how much of that is resident is known only from above.
  Bytes ranged;
  for (const ChargedRange& r : snapshot.ranges) ranged += r.size;
  const Bytes on_heap = snapshot.current - ranged;
  const Bytes malloc_resident = std::min(o.allocator.taken, heap + anonymous);
  Bytes room = malloc_resident;
  count("accounts on the heap", on_heap, take(on_heap, room));
  // Free bytes: no more than would be resident if everything in use were.
  const Bytes not_in_use = positive(malloc_resident - o.allocator.in_use);
  count("free in the allocator", o.allocator.free, take(std::min(o.allocator.free_resident, not_in_use), room));

  for (const MappingGroup& g : o.groups)
    if (g.kind == MappingKind::kFile) count("file " + g.name, g.resident, g.resident);
  const Bytes stacks = resident_of(o, MappingKind::kStack) + resident_of(o, MappingKind::kThreadStack);
  count("stacks", stacks, stacks);
  count("jit code", resident_of(o, MappingKind::kCode), resident_of(o, MappingKind::kCode));
  e.explained = std::min(e.explained, e.resident);

  const Bytes used_of_malloc = malloc_resident - room;
  const Bytes unnamed = heap + anonymous - used_of_malloc;
  const auto left = [&](std::string name, Bytes bytes) {
    if (bytes.value > 0) e.rest.push_back({std::move(name), bytes, Bytes{}});
  };
  left("memory no one charged", unnamed);
  left("static data", resident_of(o, MappingKind::kStatic));
  left("kernel pages", resident_of(o, MappingKind::kKernel));
  std::ranges::stable_sort(e.lines, std::ranges::greater{}, &ExplainedLine::counted);
  return e;
}

std::string to_string(const Explanation& e) {
  std::string text = format("explained {} of {} ({:.1f} %)", e.explained, e.resident, 100 * e.share());
  for (size_t i = 0; i < e.rest.size(); ++i)
    text += format("{}{} {}", i ? ", " : "; the rest is ", e.rest[i].name, e.rest[i].claimed);
  return text;
}

Growth growth(const Explanation& start, const Explanation& now) {
  Growth g;
  g.resident = now.resident - start.resident;
  g.explained = std::clamp(now.explained - start.explained, Bytes{}, positive(g.resident));
  if (g.resident.value > 0) g.share = double(g.explained.value) / double(g.resident.value);
  return g;
}

}  // namespace millpond::ledger
