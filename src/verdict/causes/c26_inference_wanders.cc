#include "verdict/causes/retention.h"

namespace millpond::verdict {
namespace {

std::optional<Match> inference_wanders(const Case& c) {
  // Only prediction, no training.
  if (c.notes.count("predict") < 3 || c.notes.line("fit") || c.notes.line("optimizer_step") ||
      c.notes.line("train_on_batch"))
    return {};
  const std::optional<Retention> r = retention(c);
  if (!r) return {};
  Match m = retention_match(c, *r);
  m.weight = 0.9;
  m.blame = c.notes.line("predict")->place;
  return m;
}

}  // namespace

const Cause c26_inference_wanders = {
    .id = "C26",
    .title = "Memory of prediction on the CPU jumps and wanders, because freed work memory is kept",
    .explanation =
        "Each call takes and frees large blocks on several threads; where they lie differs from call to call.",
    .fix = "Not a leak. Predict in batches of one size; MALLOC_ARENA_MAX=2, jemalloc or tcmalloc keep it lower.",
    .threads = {"keras#19500", "tensorflow#63701"},
    .detect = inference_wanders};

}  // namespace millpond::verdict
