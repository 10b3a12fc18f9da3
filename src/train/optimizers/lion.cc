#include "train/optimizers/kind.h"

namespace millpond {

static void settings(const train::Settings& s, LionOptions& o) {
  s.number("beta_1", o.beta_1, 0, 1);
  s.number("beta_2", o.beta_2, 0, 1);
  s.common(o);
}

static void formula(ops::Formula& f, const LionOptions& o) {
  const ops::Term w = f.weight(), g = f.gradient(), m = f.slot("momentum");
  f.becomes(w, w - f.learning_rate() * sign(o.beta_1 * m + (1 - o.beta_1) * g));
  f.becomes(m, o.beta_2 * m + (1 - o.beta_2) * g);
}

Lion::Lion(double learning_rate, LionOptions o) : Optimizer(train::make_optimizer(learning_rate, std::move(o))) {}
constinit const train::OptimizerKind train::kinds::lion{"Lion", train::read_optimizer<Lion, LionOptions>};

}  // namespace millpond
