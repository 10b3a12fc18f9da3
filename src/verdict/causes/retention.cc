#include "verdict/causes/retention.h"

#include "base/format.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {

std::optional<Retention> retention(const Case& c) {
  const Growth& g = c.growth;
  if (g.outcome == Outcome::kLeak || g.garbage) return {};
  const double rss = g.returned_rss > 0 ? g.returned_rss : g.level;
  // Every allocator keeps some between two steps, and a compiler leaves more: less than a third of the process is not worth a word.
  const double least = std::max(20e6, rss / 3);
  if (!c.evidence.probes.empty()) {
    const std::string how = format("trim gave back {} of {} at once", amount(g.returned), amount(rss));
    // At one probe a wandering process may stand high; what is kept always is what counts.
    if (g.usually >= least && g.usually > 0.6 * g.range) return Retention{g.usually, false, how};
    // Kept since before the first probe, and not asked for again after it: a compiler may leave a third of the process, once.
    if (g.returned >= std::max(least, 0.45 * rss) && g.by_gc < 0.5 * g.returned && g.level <= rss - 0.6 * g.returned) return Retention{g.returned, false, how};
    // It rises again after every probe, and allocators do not have more in use.
    if ((g.outcome == Outcome::kFreed || g.refills) && !g.wanders && g.returned >= std::max(20e6, 0.05 * rss))
      return Retention{g.returned, true, how};
    return {};
  }
  // No probe was made: what the allocator itself calls free.
  if (c.periods.heap_free.empty()) return {};
  const double kept = median({c.periods.heap_free.y.end() - long(std::max<size_t>(1, c.periods.heap_free.size() / 3)),
                              c.periods.heap_free.y.end()});
  if (kept < std::max(20e6, 0.25 * g.level) || (kept < 0.6 * g.range && g.outcome != Outcome::kFreed)) return {};
  return Retention{kept, g.outcome == Outcome::kFreed,
                   format("{} of {} are free in the allocator", amount(kept), amount(g.level))};
}

void blame_temporaries(const Case& c, Match& m) {
  for (const SiteShare& s : temporaries(c.evidence))
    if (s.user) {
      m.blame = c.with_text(s.place);
      m.evidence.push_back(format("most of what was allocated and freed again came from {}: {}", at(s.place), s.bytes));
      return;
    }
}

Match retention_match(const Case& c, const Retention& r) {
  Match m{.kind = Kind::kRetention,
          .share = 1,
          .weight = 0.8,
          .bytes = r.bytes};
  m.holder = "the C allocator (glibc)";
  m.evidence.push_back(r.how);
  if (c.growth.has_live)
    m.evidence.push_back(
        format("what allocators have in use changed by {} after warm-up", amount(c.growth.held.total)));
  if (r.rising) m.evidence.push_back("resident memory rises between probes and falls at each");
  blame_temporaries(c, m);
  return m;
}

}  // namespace millpond::verdict
