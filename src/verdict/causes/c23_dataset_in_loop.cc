#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

std::optional<Match> dataset_in_loop(const Case& c) {
  if (!c.leaking()) return {};
  const CountedLine* line = c.notes.line("dataset");
  const Stage* generator = nullptr;
  for (const Stage& s : c.notes.stages)
    if (s.op == "from_generator" || s.op == "py_function" || s.op == "numpy_function") generator = &s;
  const double made = std::max(line ? c.times("dataset") : 0, generator ? double(generator->count) : 0);
  if (made < 3 || (!line && !generator)) return {};
  const Place place = line ? line->place : generator->place;
  const std::optional<double> under = c.growth_share(place);
  // Without a generator a pipeline leaves little: then only what was really allocated there counts.
  if (!generator && under.value_or(0) < 0.4) return {};
  Match m{
      .share = under.value_or(0.7) * (1 - 0.8 * c.data_share()), .weight = generator ? 0.9 : 0.7};
  // What the Python function closes over was allocated elsewhere, and is kept all the same.
  if (generator) m.share = std::max(m.share, 0.75 * (1 - 0.8 * c.data_share()));
  m.blame = place;
  m.evidence.push_back(format("{:.0f} pipelines were made at {}", made, at(place)));
  return m;
}

}  // namespace

const Cause c23_dataset_in_loop = {
    .id = "C23",
    .title = "A tf.data pipeline with a Python generator is made in every round; its functions are registered for ever",
    .explanation =
        "from_generator and py_function put Python functions into a table of the root graph that is never emptied.",
    .fix = "Make the data set once, outside the loop, and repeat or re-iterate it.",
    .threads = {"tensorflow#37653", "tensorflow#61344"},
    .detect = dataset_in_loop};

}  // namespace millpond::verdict
