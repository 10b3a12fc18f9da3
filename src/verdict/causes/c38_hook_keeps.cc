#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/fixes.h"
#include "verdict/causes/torch_hook.h"
#include "verdict/causes/words.h"
#include "verdict/numbers.h"

namespace millpond::verdict {
namespace {

std::optional<Match> hook_keeps(const Case& c) {
  if (!c.leaking()) return {};
  for (const Container& k : c.notes.containers) {
    if (!k.still || k.bounded || !filled_by_hook(c, k)) continue;
    Match m{.share = c.share(k), .weight = 1.1};
    if (m.share < 0.3) continue;
    m.blame = k.place;
    m.holder = tell(k);
    m.evidence.push_back(format("{} is filled by a hook: {} more {}, {} in all", named(k), number(k.per_period), every(c),
                                amount(k.bytes_per_period)));
    Fix fix = keep_less(c, k);
    fix.text += " When the hook has done its work, call `remove` of the handle that registering it gave.";
    take(m, std::move(fix));
    return m;
  }
  return {};
}

}  // namespace

const Cause c38_hook_keeps = {
    .id = "C38",
    .title = "A hook of a torch module keeps the activations of every forward pass",
    .explanation =
        "A forward hook runs with every batch; what it stores, or what its closure refers to, lives as long as the "
        "module.",
    .fix = "Keep only the latest activation or a running statistic, detached, and remove the handle when done.",
    .threads = {"pytorch#82528", "pytorch#46386", "opacus#176"},
    .detect = hook_keeps};

}  // namespace millpond::verdict
