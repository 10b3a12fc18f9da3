#include "base/format.h"
#include "verdict/causes/pipeline.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

std::optional<Match> dataset_cache(const Case& c) {
  const Stage* stage = c.notes.stage("cache");
  if (!stage || c.leaking()) return {};
  const double bytes = held_by_pipeline(c);
  if (bytes <= 0) return {};
  Match m{.kind = Kind::kCache, .share = 1, .weight = 1, .bytes = bytes};
  m.blame = stage->place;
  m.holder = "the cache of the tf.data pipeline";
  m.evidence.push_back(format("cache() at {} holds about {}; memory rose in the first epoch and then stayed",
                              at(stage->place), amount(bytes)));
  return m;
}

}  // namespace

const Cause c19_dataset_cache = {
    .id = "C19",
    .title = "cache() of the input pipeline keeps the whole decoded data set",
    .explanation =
        "It fills during the first epoch and then stays: as large as the elements at that point of the pipeline.",
    .fix =
        "Not a leak. Put cache() before decoding and augmentation (small elements), cache to a file (cache(\"path\")), "
        "or leave it out.",
    .threads = {"tensorflow#27128", "tensorflow#50579"},
    .detect = dataset_cache};

}  // namespace millpond::verdict
