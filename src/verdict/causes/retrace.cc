#include "verdict/causes/retrace.h"

#include <regex>
#include <set>

#include "base/format.h"
#include "verdict/causes/words.h"
#include "verdict/pattern.h"

namespace millpond::verdict {
namespace {

// Names that people give to a loop's counter or to a plain number. A tensor may have one too: then it would not
// retrace.
const std::set<std::string> kNumbers = {"i",
                                        "j",
                                        "k",
                                        "n",
                                        "t",
                                        "it",
                                        "idx",
                                        "index",
                                        "step",
                                        "steps",
                                        "epoch",
                                        "batch_idx",
                                        "batch_index",
                                        "iter",
                                        "iteration",
                                        "episode",
                                        "lr",
                                        "rate",
                                        "learning_rate",
                                        "scale",
                                        "alpha",
                                        "beta",
                                        "gamma",
                                        "temperature",
                                        "global_step",
                                        "count",
                                        "num_steps",
                                        "seed"};

/// Whether an argument of a call looks like a Python number: asked only of runs whose agent did not see why.
bool number_argument(const std::string& text) {
  const size_t open = text.find('(');
  if (open == std::string::npos) return false;
  static const std::regex word(R"((\w+\s*=\s*)?([A-Za-z_][\w.]*|\d[\w.]*)\s*[,)])");
  for (std::sregex_iterator m(text.begin() + long(open), text.end(), word), end; m != end; ++m) {
    const std::string name = (*m)[2];
    const std::string last = name.substr(name.rfind('.') == std::string::npos ? 0 : name.rfind('.') + 1);
    if (kNumbers.contains(lower(last)) || std::isdigit(static_cast<unsigned char>(name[0]))) return true;
  }
  return false;
}

bool keras_method(const std::string& text) {
  static const Pattern method(R"(\.(fit|evaluate|predict|train_on_batch|test_on_batch|predict_on_batch)\()");
  return method.in(text);
}

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
  std::string text;
  if (line) {
    r.place = line->place;
    r.line = line;
    text = line->place.snippet;
  }
  for (const SeenAdvice& a : c.notes.advice)
    if (!r.place && a.what == "retracing") r.place = a.place, text = a.place.snippet;
  if (line && line->why.all() >= 3) {  // as the agent saw it
    const TraceReasons& why = line->why;
    const double most = std::max({why.fresh + why.object, why.literal, why.shape});
    r.why = most == why.literal ? Why::kArgument : most == why.shape ? Why::kShape : Why::kCallable;
    if (r.why == Why::kCallable && why.jit > 0.5 * line->count) r.why = Why::kCompiled;
    return r;
  }
  const bool number = !keras_method(text) && number_argument(text);
  const bool makes = contains(text, "lambda") || contains(text, "tf.function(") || new_functions(c);
  r.why = makes ? Why::kCallable : number ? Why::kArgument : Why::kShape;
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
