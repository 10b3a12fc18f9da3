#include <algorithm>

#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

std::optional<Match> taken_once(const Case& c) {
  // A framework's own start is not worth a word: only a jump that is a good part of the process.
  const Growth& g = c.growth;
  if (c.leaking() || g.outcome == Outcome::kTooShort) return {};
  const double bytes = std::max(c.jump(), c.kept_by_user());
  if (bytes < std::max(64e6, 0.25 * g.level)) return {};
  Match m{.kind = Kind::kReserve, .share = 1, .weight = 0.3, .bytes = bytes};
  if (bytes <= c.jump())
    m.evidence.push_back(
        format("{} when the first phase began, {} in the last third of the run", amount(g.baseline), amount(g.level)));
  else  // it was there before anything was marked
    m.evidence.push_back(format("{} of {} were taken early by the program's own lines and stay", amount(bytes),
                                amount(g.level)));
  const SiteGroup* most = nullptr;
  for (const SiteGroup& s : c.sites.groups)
    if (s.user && s.bytes > (most ? most->bytes : 0.3 * bytes) && !c.imports(s)) most = &s;
  if (most) m.blame = c.with_text(most->place);
  return m;
}

}  // namespace

const Cause r1_taken_once = {
    .id = "",
    .title = "Memory was taken once, when training began",
    .explanation = "Libraries, graphs, work memory and data that are needed from the first step on.",
    .fix = "Nothing to fix: it does not grow.",
    .threads = {},
    .detect = taken_once};

}  // namespace millpond::verdict
