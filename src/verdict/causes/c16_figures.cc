#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/fixes.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

bool matplotlib(const Frame& f) { return contains(f.file, "matplotlib"); }

std::optional<Match> figures(const Case& c) {
  const double open = c.rose("pyplot.figures");
  const Container* registry = nullptr;
  for (const Container& k : c.notes.containers)
    if (k.still && (is_figure(k.item_type) || k.type == "pyplot figures")) registry = &k;
  if (!c.leaking() || (open < 3 && !registry)) return {};
  const std::optional<double> under = c.growth_share(matplotlib);
  Match m{.share = std::max(0.6, under.value_or(0.9)) * (1 - 0.8 * c.data_share()), .weight = 1};
  if (under && *under < 0.2) m.share = *under;
  if (const CountedLine* line = c.notes.line("figure"))
    m.blame = line->place;
  else if (registry && registry->is_user && registry->place.line)
    m.blame = registry->place;
  m.holder = "pyplot's registry of figures";
  const Series figures = counter(c.evidence, c.periods, "pyplot.figures");
  if (!figures.empty())
    m.evidence.push_back(format("{:.0f} figures are open at the end, {:.0f} when warm-up was over", figures.y.back(),
                                figures.y.back() - open));
  if (under) m.evidence.push_back(format("{:.0f} % of the sampled growth was allocated by matplotlib", 100 * *under));
  take(m, close_figure(c.notes.line("figure")));
  return m;
}

}  // namespace

const Cause c16_figures = {
    .id = "C16",
    .title = "Figures of matplotlib are made and never closed",
    .explanation = "pyplot keeps every figure until it is closed, also when no variable refers to it.",
    .fix = "Close each figure with pyplot's `close` when it is saved, or make it without pyplot (matplotlib.figure.Figure), which keeps none.",
    .threads = {"Clay-foundation/model#158", "tensorflow/models#3603", "matplotlib#8519"},
    .detect = figures};

}  // namespace millpond::verdict
