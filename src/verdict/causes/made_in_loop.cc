// What is made anew in every round, while a table of the framework keeps what was made before.
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
  if (!c.leaking() || made < kTable.repeats) return {};
  Match m{.share = c.by_count(), .weight = kTable.made};
  if (c.periods.rate(Unit::kModel) > 0) m.unit = Unit::kModel;
  m.evidence.push_back(format("{:.0f} models were made after warm-up", made));
  const double registry = c.rose("tf.gradient_registry"), graphs = c.rose("tf.funcgraphs");
  if (registry >= kTable.repeats)
    m.evidence.push_back(
        format("TensorFlow's gradient registry gained {:.0f} entries; each keeps the graph and the "
               "variables of a fitted model",
               registry));
  else if (graphs >= kTable.repeats)
    m.evidence.push_back(format("{:.0f} more traced graphs are alive", graphs));
  if (const Container* list = list_of_models(c)) {
    m.blame = list->place;
    m.holder = tell(*list);
    m.share = m.weight = 1;
    m.title = "Every model that is made is kept in a container";
    m.evidence.push_back(format("{} holds {:.0f} models", tell(*list), list->length));
    m.fix = format(
        "Do not keep the models{}: keep their scores or save them to disk. Then use one model for all rounds "
        "(set_weights, a new optimizer state), or run each in a process of its own: deleting a fitted Keras "
        "model does not give all of it back.",
        list->place.snippet.empty() ? "" : format(" (`{}`)", list->place.snippet));
  } else {
    m.blame = c.made_at();
    m.holder = registry >= kTable.repeats ? "TensorFlow's global gradient registry" : "";
    if (const double cleared = c.notes.count("clear_session"); cleared >= 2)
      m.evidence.push_back(format("clear_session was called {} and did not give it back", often(cleared)));
  }
  return m;
}

std::optional<Match> load_in_loop(const Case& c) {
  const double loads = c.times("load_model");
  const CountedLine* line = c.notes.line("load_model");
  if (!c.leaking() || !line || loads < kTable.repeats) return {};
  const std::optional<double> under = c.growth_share(line->place);
  Match m{.share = c.by_count(), .weight = kTable.counted};
  m.blame = line->place;
  m.evidence.push_back(format("{} loaded a model {}", at(line->place), often(line->count)));
  if (under) m.evidence.push_back(format("{:.0f} % of the sampled growth was allocated under that line", 100 * *under));
  return m;
}

std::optional<Match> compile_in_loop(const Case& c) {
  const double compiles = c.times("compile", Unit::kCompile), models = c.times("model", Unit::kModel);
  const CountedLine* line = c.notes.line("compile");
  // A model that is made is compiled too: that is C5.
  if (!c.leaking() || compiles < kTable.repeats || models > kTable.most * compiles) return {};
  Match m{.share = c.by_count(), .weight = kTable.counted};
  if (line) m.blame = line->place;
  m.holder = c.rose("tf.gradient_registry") >= kTable.repeats ? "TensorFlow's global gradient registry" : "";
  m.evidence.push_back(format("model.compile was called {} after warm-up, on models made before", often(compiles)));
  if (const double registry = c.rose("tf.gradient_registry"); registry >= kTable.repeats)
    m.evidence.push_back(
        format("TensorFlow's gradient registry gained {:.0f} entries; each keeps a traced graph", registry));
  return m;
}

std::optional<Match> predict_in_loop(const Case& c) {
  // Current versions do not leak here: only when growth really lies under the call and is nothing else.
  const CountedLine* line = c.notes.line("predict");
  if (!c.leaking() || !line || c.times("predict") < kTable.calls) return {};
  const std::optional<double> under = c.growth_share(line->place);
  if (under.value_or(0) < kTable.mostly) return {};
  Match m{.share = *under * (1 - c.data_share()), .weight = kTable.by_shape};
  m.blame = line->place;
  m.evidence.push_back(format("predict was called {} at {}", often(line->count), at(line->place)));
  return m;
}

std::optional<Match> dataset_in_loop(const Case& c) {
  if (!c.leaking()) return {};
  const CountedLine* line = c.notes.line("dataset");
  const Stage* generator = nullptr;
  for (const Stage& s : c.notes.stages)
    if (s.op == "from_generator" || s.op == "py_function" || s.op == "numpy_function") generator = &s;
  const double made = std::max(line ? c.times("dataset") : 0, generator ? double(generator->count) : 0);
  if (made < kTable.repeats || (!line && !generator)) return {};
  const Place place = line ? line->place : generator->place;
  const std::optional<double> under = c.growth_share(place);
  // Without a generator a pipeline leaves little: then only what was really allocated there counts.
  if (!generator && under.value_or(0) < kTable.frames) return {};
  Match m{.share = under.value_or(kTable.library) * c.beside_data(),
          .weight = generator ? kTable.made : kTable.library};
  // What the Python function closes over was allocated elsewhere, and is kept all the same.
  if (generator) m.share = std::max(m.share, kTable.library * c.beside_data());
  m.blame = place;
  m.evidence.push_back(format("{:.0f} pipelines were made at {}", made, at(place)));
  return m;
}

}  // namespace

const std::vector<Cause> kMadeInLoop = {
    {.id = "C5",
     .title = "A new model is made in every round, and what was built for the old ones stays",
     .fix = "Use one model for all rounds: save its first weights, call set_weights and reset the optimizer's "
            "variables each round; or run each model in a process of its own (multiprocessing with spawn). del, "
            "clear_session() and gc.collect() do not free a fitted model here.",
     .threads = {"keras#2102", "keras#21090", "keras#20245", "tensorflow#61791"},
     .detect = model_in_loop},
    {.id = "C7",
     .title = "A model is loaded from disk again and again, and the old ones are not freed",
     .fix = "Load once and use load_weights (or set_weights) for further checkpoints, or load in a process of its own.",
     .threads = {"tensorflow#40171", "tensorflow#45453", "tensorflow#35524"},
     .detect = load_in_loop},
    {.id = "C8",
     .title = "model.compile is called in the loop; each call traces a new training function and the old one stays",
     .fix = "Compile once, before the loop, and change what has to change: `model.optimizer.learning_rate = rate`.",
     .threads = {"tensorflow#55398"},
     .detect = compile_in_loop},
    {.id = "C9",
     .title = "model.predict is called for small inputs in a loop, and each call leaves something behind",
     .fix = "Call the model itself: `model(x, training=False)`, or `model.predict_on_batch(x)`.",
     .threads = {"keras#13118", "tensorflow#44711", "tensorflow#33030"},
     .detect = predict_in_loop},
    {.id = "C23",
     .title =
         "A tf.data pipeline with a Python generator is made in every round; its functions are registered for ever",
     .fix = "Make the data set once, outside the loop, and repeat or re-iterate it.",
     .threads = {"tensorflow#37653", "tensorflow#61344"},
     .detect = dataset_in_loop}};

}  // namespace millpond::verdict
