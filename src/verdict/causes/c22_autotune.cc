#include "base/format.h"
#include "verdict/causes/pipeline.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

std::optional<Match> autotune(const Case& c) {
  if (c.leaking() || c.growth.outcome != Outcome::kStopped || c.notes.stage("cache") || c.notes.stage("shuffle") ||
      c.periods.rss.empty())
    return {};
  const Stage* tuned = nullptr;
  for (const Stage& s : c.notes.stages)
    if (s.buffer && *s.buffer == -1) tuned = &s;
  // It fills over several epochs, so the marks themselves must show it.
  const double filled = std::min(held_by_pipeline(c), c.growth.level - c.periods.rss.y.front());
  if (!tuned || filled < std::max(32e6, 0.05 * c.growth.level)) return {};
  Match m{.kind = Kind::kCache, .share = 1, .weight = 0.8, .bytes = filled};
  m.blame = tuned->place;
  m.evidence.push_back(format("{} at {} tunes its own buffer; memory rose by {} and stopped", tuned->op,
                              at(tuned->place), amount(filled)));
  return m;
}

}  // namespace

const Cause c22_autotune = {
    .id = "C22",
    .title = "tf.data tunes its buffers up to half of the memory that is free",
    .explanation =
        "With AUTOTUNE prefetch and parallel map grow while that helps; the budget is half of the available memory for "
        "each pipeline.",
    .fix = "Not a leak. Fix the sizes (prefetch(2), num_parallel_calls=4), or give the pipeline tf.data.Options with a smaller autotune.ram_budget.",
    .threads = {"tensorflow#33516", "tensorflow#36821", "horovod#4296"},
    .detect = autotune};

}  // namespace millpond::verdict
