#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

std::optional<Match> compile_in_loop(const Case& c) {
  const double compiles = c.times("compile", Unit::kCompile), models = c.times("model", Unit::kModel);
  const CountedLine* line = c.notes.line("compile");
  // A model that is made is compiled too: that is C5.
  if (!c.leaking() || compiles < 3 || models > 0.5 * compiles) return {};
  Match m{.share = 0.9 * (1 - 0.8 * c.data_share()), .weight = 0.95};
  if (line) m.blame = line->place;
  m.holder = c.rose("tf.gradient_registry") >= 3 ? "TensorFlow's global gradient registry" : "";
  m.evidence.push_back(format("model.compile was called {} after warm-up, on models made before", often(compiles)));
  const double registry = c.rose("tf.gradient_registry");
  if (registry >= 3)
    m.evidence.push_back(
        format("TensorFlow's gradient registry gained {:.0f} entries; each keeps a traced graph", registry));
  return m;
}

}  // namespace

const Cause c08_compile_in_loop = {
    .id = "C8",
    .title = "model.compile is called in the loop; each call traces a new training function and the old one stays",
    .explanation =
        "A compile makes a new optimizer and a new train function. TensorFlow's gradient registry keeps the old "
        "graphs.",
    .fix = "Compile once, before the loop, and change what has to change: `model.optimizer.learning_rate = rate`.",
    .threads = {"tensorflow#55398"},
    .detect = compile_in_loop};

}  // namespace millpond::verdict
