#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"
#include "verdict/numbers.h"

namespace millpond::verdict {
namespace {

std::optional<Match> custom_function(const Case& c) {
  if (!c.leaking() || !c.notes.has("torch")) return {};
  // A node of a Function written in Python is a Python type of its own: <Name>Backward, alive more and more.
  for (const GrowingType& t : c.notes.types) {
    if (!t.type.ends_with("Backward") || t.per_period < 1) continue;
    Match m{.share = 0.8 * (1 - c.data_share()), .weight = 0.9};
    m.blame = c.growing_place();
    m.evidence.push_back(format("{} of type {} are alive, {} more {}, and gc does not free them", counted(t.count, "node"),
                                t.type, number(t.per_period), every(c)));
    return m;
  }
  return {};
}

}  // namespace

const Cause c39_custom_function = {
    .id = "C39",
    .title = "A custom autograd Function stores its output on ctx: a cycle through C++ that gc cannot see",
    .explanation = "`ctx.y = y` makes output and node refer to one another.",
    .fix = "Use `ctx.save_for_backward(y)`.",
    .threads = {"pytorch#25340", "pytorch#5569"},
    .detect = custom_function};

}  // namespace millpond::verdict
