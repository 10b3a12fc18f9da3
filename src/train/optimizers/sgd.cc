#include "train/optimizers/kind.h"

namespace millpond {

static void settings(const train::Settings& s, SGDOptions& o) {
  s.number("momentum", o.momentum, 0, 1);
  s.flag("nesterov", o.nesterov);
  s.common(o);
}

static void formula(ops::Formula& f, const SGDOptions& o) {
  const ops::Term w = f.weight(), along = f.learning_rate() * f.gradient();
  if (o.momentum == 0) return f.becomes(w, w - along);
  const ops::Term v = f.slot("momentum");
  const ops::Term after = o.momentum * v - along;
  f.becomes(v, after);
  f.becomes(w, o.nesterov ? w + (o.momentum * after - along) : w + after);
}

SGD::SGD(double learning_rate, SGDOptions o) : Optimizer(train::make_optimizer(learning_rate, std::move(o))) {}
constinit const train::OptimizerKind train::kinds::sgd{"SGD", train::read_optimizer<SGD, SGDOptions>};

}  // namespace millpond
