#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

std::optional<Match> predict_outputs(const Case& c) {
  // High only inside the call: at the marks it is gone. Listed, and never what sets the verdict.
  const CountedLine* line = c.notes.line("predict");
  if (!line) line = c.notes.line("evaluate");
  const double peak = double(c.evidence.peak_rss.value), above = peak - c.growth.level;
  if (!line || c.leaking() || above < std::max(64e6, 0.2 * c.growth.level)) return {};
  double churn = 0;
  for (const SiteShare& s : temporaries(c.evidence))
    if (same_line(s.place, line->place)) churn += double(s.bytes.value);
  if (churn < above) return {};
  Match m{.kind = Kind::kFlat, .share = 1, .weight = 0.5, .bytes = above};
  m.blame = line->place;
  m.evidence.push_back(
      format("the highest point, {}, is {} above the level between epochs; {} were allocated and freed at {}",
             amount(peak), amount(above), amount(churn), at(line->place)));
  return m;
}

}  // namespace

const Cause c13_predict_outputs = {
    .id = "C13",
    .title = "predict collects all outputs before it returns",
    .explanation = "Outputs of all batches are kept until the end and then joined: twice their size for a moment.",
    .fix = "Loop over batches with predict_on_batch and write each result away.",
    .threads = {"keras#21642", "tensorflow#44986", "transformers#7232"},
    .detect = predict_outputs};

}  // namespace millpond::verdict
