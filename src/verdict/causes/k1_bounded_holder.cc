#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

std::optional<Match> bounded_holder(const Case& c) {
  if (c.leaking()) return {};
  for (const Container& k : c.notes.containers) {
    const double bytes = k.per_period > 0 ? k.bytes_per_period / k.per_period * k.length : 0;
    const bool ends = k.bounded.has_value() || ((!k.still || !k.rising) && c.growth.outcome == Outcome::kStopped);
    // What grew by the clock only was filled before the program's rounds began: data, not a cache.
    const bool before = !k.bounded && k.rounds == "timer" && c.periods.unit != Unit::kSecond;
    if (!ends || before || bytes < std::max(16e6, 0.02 * c.growth.level)) continue;
    Match m{.kind = Kind::kCache, .share = 1, .weight = 1, .bytes = bytes};
    m.blame = k.place;
    m.holder = tell(k);
    if (k.bounded)
      m.evidence.push_back(
          format("{} has {:.0f} of at most {:.0f} items, {}", tell(k), k.length, *k.bounded, amount(bytes)));
    else
      m.evidence.push_back(format("{} stopped at {:.0f} items, {}", tell(k), k.length, amount(bytes)));
    return m;
  }
  return {};
}

}  // namespace

const Cause k1_bounded_holder = {
    .id = "K1",
    .title = "A container fills up to its limit and then stops",
    .explanation = "A replay buffer, an lru_cache or a deque(maxlen=...) grows until it is full.",
    .fix = "Not a leak. A smaller limit takes less memory.",
    .threads = {},
    .detect = bounded_holder};

}  // namespace millpond::verdict
