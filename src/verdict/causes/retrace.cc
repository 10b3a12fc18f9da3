#include "verdict/causes/retrace.h"

#include "base/format.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

bool new_functions(const Case& c) {
  for (const GrowingType& t : c.notes.types)
    if (contains(t.type, "polymorphic_function.Function") || t.type == "Function" || contains(t.type, "tf.function"))
      return t.per_period >= 0.5;
  return false;
}

}  // namespace

std::optional<Retrace> retrace(const Case& c) {
  if (!c.leaking()) return {};
  Retrace r;
  r.count = std::max(c.rose("tf.traces"), c.times("trace"));
  const CountedLine* line = c.notes.line("trace");
  if (r.count < 3 || (!line && c.rose("tf.traces") < 3)) return {};
  // A new model or a new compile is traced for training, validation and prediction: no mystery in that.
  const double made = c.times("model", Unit::kModel) + c.times("compile", Unit::kCompile) + c.times("load_model");
  if (r.count <= 4 * made + 1) return {};
  if (line) r.place = line->place, r.line = line;
  for (const SeenAdvice& a : c.notes.advice)
    if (!r.place && a.what == "retracing") r.place = a.place;
  if (line && line->why.all() >= 3) {  // as the agent saw it
    const TraceReasons& why = line->why;
    const double most = std::max({why.fresh + why.object, why.literal, why.shape});
    r.why = most == why.literal ? Why::kArgument : most == why.shape ? Why::kShape : Why::kCallable;
    if (r.why == Why::kCallable && why.jit > 0.5 * line->count) r.why = Why::kCompiled;
    return r;
  }
  r.why = new_functions(c) ? Why::kCallable : Why::kShape;
  return r;
}

Match retrace_match(const Case& c, const Retrace& r) {
  Match m;
  // Traced code calls the user's function: the line that matters is the one that calls it.
  m.blame = r.place;
  if (!m.blame)
    if (const std::optional<Place> grows = c.growing_place()) m.blame = c.loop_place(*grows);
  std::optional<double> under;
  if (m.blame) under = c.growth_share(*m.blame);
  m.share = std::clamp(under.value_or(0.9), 0.6, 1.0) * (1 - 0.8 * c.data_share());
  m.weight = 0.95;
  m.holder = "the cache of traces of the tf.function";
  m.evidence.push_back(format("tf.functions were traced {} after warm-up{}", often(r.count),
                              r.place ? ", most often under " + at(*r.place) : ""));
  if (under) m.evidence.push_back(format("{:.0f} % of the sampled growth was allocated under that line", 100 * *under));
  return m;
}

}  // namespace millpond::verdict
