#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

bool in_tensorboard(const Frame& f) {
  const std::string file = lower(f.file);
  return contains(file, "tensorboard") || contains(file, "summary_ops") || contains(file, "torch/utils/tensorboard");
}

std::optional<Match> tensorboard(const Case& c) {
  if (!c.leaking()) return {};
  const std::optional<double> under = c.growth_share(in_tensorboard);
  if (under.value_or(0) < 0.4) return {};
  Match m{.share = *under * (1 - c.data_share()), .weight = 0.95};
  m.blame = c.growing_place();
  m.evidence.push_back(format("{:.0f} % of the sampled growth was allocated by TensorBoard's writers", 100 * *under));
  return m;
}

}  // namespace

const Cause c15_tensorboard = {
    .id = "C15",
    .title = "TensorBoard's histograms or profile keep memory",
    .explanation = "Histograms and profiles of every epoch are held until they are written.",
    .fix = "TensorBoard(histogram_freq=0, profile_batch=0), or flush and close the writer each epoch.",
    .threads = {"keras#12481", "tensorflow#60917"},
    .detect = tensorboard};

}  // namespace millpond::verdict
