#include <algorithm>

#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

bool trains(const Case& c, const Place& p) {
  for (const CountedLine& l : c.notes.lines)
    if (same_line(l.place, p)) return true;  // a call into a framework: its memory has other names
  return false;
}

/// Most of it in a block or two: work memory of a library (a BLAS has 32 MiB for each thread), not results.
bool few_blocks(const Case& c, const SiteGroup& group) {
  double large = 0;
  const Mark& last = *c.periods.marks.back();
  for (const SiteState& s : last.sites)
    if (s.blocks < 3 && std::ranges::find(group.sites, s.site) != group.sites.end()) large += double(s.bytes.value);
  return large > 0.5 * group.bytes;
}

std::optional<Match> filled_once(const Case& c) {
  if (c.leaking() || c.periods.marks.empty()) return {};
  const SiteGroup* best = nullptr;
  double most = std::max(20e6, 0.03 * c.growth.level);
  for (const SiteGroup& s : c.sites.groups) {
    if (!s.user || trains(c, s.place) || s.live.size() < 4 || cohorts(s.age) != Cohorts::kOld) continue;
    if (s.blocks < 3 || few_blocks(c, s) || c.imports(s)) continue;  // made once: a reserve
    // It filled while the program ran: over the periods, or between the first step and the first of them. What was
    // there before is data.
    const double filled = s.bytes - (c.sites.has_begun ? s.begun : s.live.y.front());
    const bool stopped = s.live.y.back() - s.live.y[s.live.size() / 2] < 0.1 * filled;
    if (filled > most && stopped) most = filled, best = &s;
  }
  if (!best) return {};
  Match m{.kind = Kind::kCache, .share = 1, .weight = 0.8, .bytes = most};
  m.blame = c.with_text(best->place);
  m.evidence.push_back(format("{} from {} were taken while training began and stayed; nothing was added later",
                              amount(most), at(best->place)));
  return m;
}

}  // namespace

const Cause k2_filled_once = {
    .id = "K2",
    .title = "Something fills in the first rounds and then stays",
    .explanation = "Results are kept for later rounds, which ask for the same ones again.",
    .fix = "Not a leak. If memory is short, bound it (functools.lru_cache has a maxsize) or keep smaller things.",
    .threads = {},
    .detect = filled_once};

}  // namespace millpond::verdict
