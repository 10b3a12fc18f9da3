#include "base/format.h"
#include "verdict/causes/retention.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

/// What the C allocator had free just before a probe, and what the probe gave back of it.
struct Pinned {
  double free = 0, returned = 0;
};

/// The first probe after warm-up tells: later ones find only what was freed since, while the allocator goes on to call pages free that trim has
/// returned.
std::optional<Pinned> at_first_probe(const Case& c) {
  for (const Probe& probe : c.evidence.probes) {
    if (early(probe, c.periods) || probe.after_trim.value <= 0) continue;
    const Mark* before = nullptr;
    for (const Mark& m : c.evidence.marks)
      if (m.t <= probe.t && m.heap_free) before = &m;
    if (!before) return {};
    return Pinned{double(before->heap_free->value), double((probe.rss - probe.after_trim).value)};
  }
  return {};
}

std::optional<Match> pinned_heap(const Case& c) {
  if (c.leaking()) return {};
  const std::optional<Pinned> p = at_first_probe(c);
  if (!p || p->free < std::max(32e6, 0.25 * c.growth.level) || p->returned > 0.3 * p->free) return {};
  Match m{.kind = Kind::kFragmentation, .share = 1, .weight = 1, .bytes = p->free - std::max(0.0, p->returned)};
  m.holder = "the C allocator (glibc)";
  m.evidence.push_back(format("{} are free in the allocator, and trim could return only {} of it: living blocks lie on nearly every page", amount(p->free),
                              amount(std::max(0.0, p->returned))));
  blame_temporaries(c, m);
  return m;
}

}  // namespace

const Cause f2_pinned_heap = {
    .id = "F2",
    .title = "Freed blocks left holes between living ones",
    .explanation = "A page goes back to the system only when nothing on it is alive; a few long-lived blocks among many short-lived ones pin most pages.",
    .fix =
        "Not a leak. Make what stays before or after what goes, copy what is kept into one array, or do the short-lived work in a process of its own.",
    .threads = {},
    .detect = pinned_heap};

}  // namespace millpond::verdict
