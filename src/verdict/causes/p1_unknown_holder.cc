#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"
#include "verdict/numbers.h"

namespace millpond::verdict {
namespace {

std::optional<Match> unknown_holder(const Case& c) {
  const std::optional<Place> grows = c.growing_place();
  if (!c.leaking() || (!grows && !c.notes.agent)) return {};
  Match m{.share = 0.5, .weight = 0.4, .confidence = 0.6};
  m.blame = grows;
  if (grows) {
    const double under = c.growth_share(*grows).value_or(0);
    m.share = std::max(0.3, under);
    m.evidence.push_back(format("{:.0f} % of the sampled growth was allocated under {}", 100 * under, at(*grows)));
  }
  // A container that is too small to explain the growth may still hold what does.
  for (const Container& k : c.notes.containers)
    if (k.still && !k.bounded && k.is_user && k.per_period > 0) {
      m.evidence.push_back(format("{} grows by {} {}", named(k), counted(k.per_period, "item"), every(c)));
      break;
    }
  return m;
}

}  // namespace

const Cause p1_unknown_holder = {
    .id = "P1",
    .title = "Memory allocated here is still in use and there is more of it every time; what holds it was not found",
    .explanation = "The line that allocates is known; the reference that keeps it is not.",
    .fix = "Look for what this line's results are stored in: an attribute, a global, a closure, a cache of a library.",
    .threads = {},
    .detect = unknown_holder};

}  // namespace millpond::verdict
