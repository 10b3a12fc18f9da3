#include <algorithm>
#include <span>

#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

/// A line whose blocks are as many at every look, and yet are new ones: a window that moves. What is made anew in each
/// round is none: it is younger than the last round, or comes and goes where a program says nothing of its rounds and
/// is looked at by the clock.
std::optional<Match> renewed(const Case& c) {
  const bool by_clock = c.periods.unit == Unit::kSecond;
  for (const SiteGroup& s : c.sites.groups) {
    const std::vector<double>& y = s.live.y;
    if (!s.user || y.size() < 8 || s.blocks < 8 || cohorts(s.age) == Cohorts::kOld) continue;
    const auto [least, most] = std::ranges::minmax(std::span(y).subspan(y.size() / 2));
    const double filled = least - (by_clock ? y.front() : s.before);
    if (filled < std::max(16e6, 0.05 * c.growth.level) || least < 0.8 * most) continue;
    if (by_clock ? biggest_step(y).size > 0.6 * filled : c.outlived(s) < 0.2 * s.bytes) continue;
    Match m{.kind = Kind::kCache, .share = 1, .weight = 0.6, .bytes = filled};
    m.blame = c.with_text(s.place);
    m.evidence.push_back(format("what {} allocated rose to {} and stayed there while new blocks took the place of old ones",
                                at(s.place), amount(least)));
    return m;
  }
  return {};
}

std::optional<Match> filled_slowly(const Case& c) {
  if (!c.leaking())
    if (const std::optional<Match> found = renewed(c)) return found;
  // By what allocators have in use, not by resident memory: that also settles slowly when nothing fills.
  const Series& live = c.periods.live;
  if (c.leaking() || live.size() < 8) return {};
  const auto part = [&](size_t from, size_t to) {
    return median({live.y.begin() + long(from), live.y.begin() + long(to)});
  };
  const size_t n = live.size();
  const double end = part(n - n / 3, n), filled = end - live.y.front();
  if (filled < std::max(32e6, 0.08 * c.growth.level)) return {};
  const bool stopped = end - part(n / 2, n - n / 3) < 0.1 * filled;
  const bool slowly = biggest_step(live.y).size < 0.6 * filled;  // one step is a reserve
  if (!stopped || !slowly) return {};
  Match m{.kind = Kind::kCache, .share = 1, .weight = 0.6, .bytes = filled};
  m.evidence.push_back(format("what allocators have in use rose by {} over several rounds and then stopped",
                              amount(filled)));
  return m;
}

}  // namespace

const Cause k3_filled_slowly = {.id = "K3",
                                .title = "Something fills over several rounds and then stops by itself",
                                .explanation = "A cache, a pool or a buffer grows until it is large enough.",
                                .fix = "Not a leak. Nothing to fix unless memory is short.",
                                .threads = {},
                                .detect = filled_slowly};

}  // namespace millpond::verdict
