#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

const Container* list_of_models(const Case& c) {
  for (const Container& k : c.notes.containers)
    if (k.still && is_model(k.item_type) && k.is_user) return &k;
  return nullptr;
}

std::optional<Match> model_in_loop(const Case& c) {
  const double made = std::max(c.times("model", Unit::kModel), c.rose("keras.models"));
  if (!c.leaking() || made < 3) return {};
  Match m;
  m.share = 0.9 * (1 - 0.8 * c.data_share());
  m.weight = 0.9;
  if (c.periods.rate(Unit::kModel) > 0) m.unit = Unit::kModel;
  m.evidence.push_back(format("{:.0f} models were made after warm-up", made));
  const double registry = c.rose("tf.gradient_registry"), graphs = c.rose("tf.funcgraphs");
  if (registry >= 3)
    m.evidence.push_back(
        format("TensorFlow's gradient registry gained {:.0f} entries; each keeps the graph and the variables of a "
               "fitted model",
               registry));
  else if (graphs >= 3)
    m.evidence.push_back(format("{:.0f} more traced graphs are alive", graphs));
  if (const Container* list = list_of_models(c)) {
    m.blame = list->place;
    m.holder = tell(*list);
    m.share = 1;
    m.weight = 1;
    m.title = "Every model that is made is kept in a container";
    m.evidence.push_back(format("{} holds {:.0f} models", tell(*list), list->length));
    m.fix = format(
        "Do not keep the models{}: keep their scores or save them to disk. Then use one model for all rounds "
        "(set_weights, a new "
        "optimizer state), or run each in a process of its own: deleting a fitted Keras model does not give all of it "
        "back.",
        list->place.snippet.empty() ? "" : format(" (`{}`)", list->place.snippet));
  } else {
    if (const CountedLine* line = c.notes.line("model")) m.blame = line->loop ? *line->loop : c.loop_place(line->place);
    if (!m.blame)
      if (const auto grows = c.growing_place()) m.blame = c.loop_place(*grows);
    m.holder = registry >= 3 ? "TensorFlow's global gradient registry" : "";
    const double cleared = c.notes.count("clear_session");
    if (cleared >= 2)
      m.evidence.push_back(format("clear_session was called {} and did not give it back", often(cleared)));
  }
  return m;
}

}  // namespace

const Cause c05_model_in_loop = {
    .id = "C5",
    .title = "A new model is made in every round, and what was built for the old ones stays",
    .explanation =
        "TensorFlow keeps traced graphs in global tables (ops.gradient_registry), and these keep the variables of the "
        "model.",
    .fix =
        "Use one model for all rounds: save its first weights, call set_weights and reset the optimizer's variables "
        "each round; or run each "
        "model in a process of its own (multiprocessing with spawn). del, clear_session() and gc.collect() do not free "
        "a fitted model here.",
    .threads = {"keras#2102", "keras#21090", "keras#20245", "tensorflow#61791"},
    .detect = model_in_loop};

}  // namespace millpond::verdict
