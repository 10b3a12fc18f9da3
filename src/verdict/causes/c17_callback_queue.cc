#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"
#include "verdict/numbers.h"

namespace millpond::verdict {
namespace {

std::optional<Match> callback_queue(const Case& c) {
  if (!c.leaking() || !c.notes.has("keras")) return {};
  for (const GrowingType& t : c.notes.types) {
    if (!t.type.ends_with("Future") || t.per_period < 5 || t.count < 100) continue;
    Match m{.share = 0.5, .weight = 0.7};
    m.evidence.push_back(format("{} are pending, {} more {}", counted(t.count, "future"), number(t.per_period), every(c)));
    return m;
  }
  return {};
}

}  // namespace

const Cause c17_callback_queue = {
    .id = "C17",
    .title = "Keras queues callbacks faster than they run",
    .explanation =
        "With JAX and torch, batch callbacks run in a thread; the queue has no bound and holds each step's logs.",
    .fix =
        "Set steps_per_execution, verbose=2, or a callback of your own that overrides on_train_batch_end (then they "
        "run in step).",
    .threads = {"keras#20284"},
    .detect = callback_queue};

}  // namespace millpond::verdict
