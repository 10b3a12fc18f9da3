#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "verdict/causes/retention.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

// sys.getallocatedblocks counts blocks of at most 512 bytes; an ordinary program has about 100 on average.
constexpr double kUsualBlock = 128;

/// Bytes of Python's arenas that hold nothing, by the most careful of what was measured; 0: not known.
double empty_in_arenas(const Case& c) {
  if (c.periods.arenas.empty()) return 0;
  const double arenas = c.periods.arenas.y.back();
  double empty = INFINITY;
  const Series blocks = counter(c.evidence, c.periods, "python.blocks");
  if (!blocks.empty()) empty = arenas - blocks.y.back() * kUsualBlock;
  // All that allocators have taken against all that is sampled alive: what is missing lies in arenas, or was never
  // seen.
  if (!c.sites.empty() && !c.periods.live.empty())
    empty = std::min(empty, c.periods.live.y.back() - c.sites.total.y.back());
  return std::isinf(empty) ? 0 : std::clamp(empty, 0.0, arenas);
}

std::optional<Match> pinned_arenas(const Case& c) {
  const double bytes = empty_in_arenas(c);
  if (c.leaking() || bytes < std::max(32e6, 0.15 * c.growth.level)) return {};
  const double arenas = c.periods.arenas.y.back();
  if (bytes < 0.4 * arenas) return {};
  Match m{.kind = Kind::kFragmentation, .share = 1, .weight = 1, .bytes = bytes};
  m.holder = "Python's arenas of small objects";
  m.evidence.push_back(format("Python's arenas have {}, of which about {} hold nothing: a few living objects pin each",
                              amount(arenas), amount(bytes)));
  if (!c.evidence.probes.empty())
    m.evidence.push_back(format("neither gc nor trim returned it ({} at most)", amount(c.growth.returned)));
  blame_temporaries(c, m);
  return m;
}

}  // namespace

const Cause f1_pinned_arenas = {
    .id = "F1",
    .title = "Freed Python objects left pages that a few survivors pin",
    .explanation =
        "Python's small objects lie in arenas; an arena goes back to the system only when nothing in it is alive.",
    .fix =
        "Not a leak. Take the sample while reading instead of making all objects first, read in a process of its own, "
        "or copy what is kept into arrays and "
        "drop the objects.",
    .threads = {},
    .detect = pinned_arenas};

}  // namespace millpond::verdict
