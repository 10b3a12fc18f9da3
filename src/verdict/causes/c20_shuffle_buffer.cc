#include "base/format.h"
#include "verdict/causes/pipeline.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

std::optional<Match> shuffle_buffer(const Case& c) {
  const Stage* stage = c.notes.stage("shuffle");
  if (!stage || c.leaking() || c.notes.stage("cache") || stage->buffer.value_or(1e9) < 100) return {};
  const double bytes = held_by_pipeline(c);
  if (bytes < std::max(32e6, 0.05 * c.growth.level)) return {};
  Match m{.kind = Kind::kCache, .share = 1, .weight = 1, .bytes = bytes};
  m.blame = stage->place;
  m.holder = "the shuffle buffer of the tf.data pipeline";
  m.evidence.push_back(format("shuffle at {} holds {} elements; memory is {} above its level before training",
                              at(stage->place), stage->buffer ? format("{:.0f}", *stage->buffer) : "many",
                              amount(bytes)));
  return m;
}

}  // namespace

const Cause c20_shuffle_buffer = {
    .id = "C20",
    .title = "The shuffle buffer holds decoded elements; its size is counted in elements, not in bytes",
    .explanation = "The buffer fills at the start of every epoch and stops at its size.",
    .fix = "Not a leak. Shuffle before decoding (file names or indices), or use a smaller buffer.",
    .threads = {"tensorflow#32376", "tensorflow#60599", "tensorflow#54299"},
    .detect = shuffle_buffer};

}  // namespace millpond::verdict
