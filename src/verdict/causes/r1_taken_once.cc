#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

std::optional<Match> detect(const Case& c) {
  // A framework's own start is not worth a word: only a jump that is a good part of the process.
  const Growth& g = c.growth;
  if (c.leaking() || g.course == Course::kTooShort || c.jump() < std::max(64e6, 0.25 * g.level)) return {};
  Match m{.kind = Kind::kReserve, .share = 1, .weight = 0.3, .bytes = c.jump(), .confidence = 0.6};
  m.evidence.push_back(
      format("{} when the first phase began, {} in the last third of the run", amount(g.baseline), amount(g.level)));
  for (const SiteGroup& s : c.sites.groups)
    if (s.user && c.reserved_at(s.place) > 0.3 * c.jump()) {
      m.blame = c.with_text(s.place);
      break;
    }
  return m;
}

}  // namespace

const Cause r1_taken_once = {
    .id = "",
    .title = "Memory was taken once, when training began",
    .explanation = "Libraries, graphs, work memory and data that are needed from the first step on.",
    .fix = "Nothing to fix: it does not grow.",
    .threads = {},
    .detect = detect};

}  // namespace millpond::verdict
