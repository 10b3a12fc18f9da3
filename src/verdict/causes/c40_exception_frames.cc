#include <algorithm>

#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/fixes.h"
#include "verdict/causes/words.h"
#include "verdict/numbers.h"

namespace millpond::verdict {
namespace {

std::optional<Match> exception_frames(const Case& c) {
  if (!c.leaking()) return {};
  for (const GrowingType& t : c.notes.types) {
    if ((t.type != "traceback" && t.type != "frame") || t.per_period < 0.5 || t.count < 3) continue;
    Match m{.share = 0.8 * (1 - 0.5 * c.data_share()), .weight = 0.95};
    for (const Container& k : c.notes.containers)
      if (k.still && k.is_user && k.items && (k.items->traceback || k.items->family == "exception")) {
        m.blame = k.place;
        m.holder = tell(k);
        m.share = std::max(m.share, c.share(k));
        m.weight = 1.1;
        take(m, keep_less(c, k));
      }
    if (!m.blame) m.blame = c.growing_place();
    m.evidence.push_back(
        format("{} of type {} are alive, {} more {}: each keeps the local variables of its functions",
               counted(t.count, "object"), t.type, number(t.per_period), every(c)));
    return m;
  }
  return {};
}

}  // namespace

const Cause c40_exception_frames = {
    .id = "C40",
    .title = "Stored exceptions keep the frames they came through, with all their variables",
    .explanation = "An exception has a traceback, the traceback has frames, and a frame has its local variables.",
    .fix = "Store the error's text, or the error without its frames (`with_traceback(None)`); try again outside of the except block.",
    .threads = {"pytorch#18853", "pytorch#10348", "pytorch#82218"},
    .detect = exception_frames};

}  // namespace millpond::verdict
