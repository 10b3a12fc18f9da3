#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

std::optional<Match> predict_in_loop(const Case& c) {
  // Current versions do not leak here: only when growth really lies under the call and is nothing else.
  const CountedLine* line = c.notes.line("predict");
  if (!c.leaking() || !line || c.times("predict") < 20) return {};
  const std::optional<double> under = c.growth_share(line->place);
  if (under.value_or(0) < 0.6) return {};
  Match m{.share = *under * (1 - c.data_share()), .weight = 0.6};
  m.blame = line->place;
  m.evidence.push_back(format("predict was called {} at {}", often(line->count), at(line->place)));
  return m;
}

}  // namespace

const Cause c09_predict_in_loop = {
    .id = "C9",
    .title = "model.predict is called for small inputs in a loop, and each call leaves something behind",
    .explanation = "Each call builds a tf.data pipeline and an iterator.",
    .fix = "Call the model itself: `model(x, training=False)`, or `model.predict_on_batch(x)`.",
    .threads = {"keras#13118", "tensorflow#44711", "tensorflow#33030"},
    .detect = predict_in_loop};

}  // namespace millpond::verdict
