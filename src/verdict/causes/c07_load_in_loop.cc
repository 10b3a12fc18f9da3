#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

std::optional<Match> load_in_loop(const Case& c) {
  const double loads = c.times("load_model");
  const CountedLine* line = c.notes.line("load_model");
  if (!c.leaking() || !line || loads < 3) return {};
  const std::optional<double> under = c.growth_share(line->place);
  Match m{.share = 0.9 * (1 - 0.8 * c.data_share()), .weight = 0.97};
  m.blame = line->place;
  m.evidence.push_back(format("{} loaded a model {}", at(line->place), often(line->count)));
  if (under) m.evidence.push_back(format("{:.0f} % of the sampled growth was allocated under that line", 100 * *under));
  return m;
}

}  // namespace

const Cause c07_load_in_loop = {
    .id = "C7",
    .title = "A model is loaded from disk again and again, and the old ones are not freed",
    .explanation = "Each load makes new variables and graphs; global tables of TensorFlow keep them.",
    .fix = "Load once and use load_weights (or set_weights) for further checkpoints, or load in a process of its own.",
    .threads = {"tensorflow#40171", "tensorflow#45453", "tensorflow#35524"},
    .detect = load_in_loop};

}  // namespace millpond::verdict
