#include "verdict/causes/jax_compile.h"

#include "base/format.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {

std::optional<JaxCompiles> jax_compiles(const Case& c) {
  JaxCompiles j;
  const CountedLine* line = c.notes.line("jax_compile");
  // Lines are counted from the start on: a counter says what happened after warm-up.
  const bool counted = !counter(c.evidence, c.periods, "jax.compiles").empty();
  j.count = counted ? c.rose("jax.compiles") : c.times("jax_compile");
  if (!c.leaking() || j.count < 3 || (!line && c.rose("jax.compiles") < 3)) return {};
  // A new Keras model is compiled too: that is C5.
  if (j.count <= 4 * c.times("model", Unit::kModel)) return {};
  if (line) {
    j.place = line->place;
    const std::string& text = line->place.snippet;
    j.fresh = contains(text, "lambda") || contains(text, "jit(");
  }
  return j;
}

Match jax_match(const Case& c, const JaxCompiles& j) {
  Match m;
  m.blame = j.place;
  if (!m.blame)
    if (const auto grows = c.growing_place()) m.blame = c.loop_place(*grows);
  m.share = 0.9 * (1 - 0.8 * c.data_share());
  m.weight = 0.95;
  m.holder = "JAX's cache of compiled programs";
  m.evidence.push_back(
      format("JAX compiled {} after warm-up{}", often(j.count), j.place ? ", most often under " + at(*j.place) : ""));
  const double arrays = c.rose("jax.live_bytes");
  if (!counter(c.evidence, c.periods, "jax.live_bytes").empty())
    m.evidence.push_back(format("living arrays grew by {} only", amount(arrays)));
  if (arrays > 0.5 * c.growth.total) m.share *= 0.5;  // then the arrays are the growth
  return m;
}

}  // namespace millpond::verdict
