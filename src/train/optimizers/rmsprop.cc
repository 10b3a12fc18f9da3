#include "train/optimizers/kind.h"

namespace millpond {

static void settings(const train::Settings& s, RMSpropOptions& o) {
  s.number("rho", o.rho, 0, 1);
  s.number("momentum", o.momentum, 0, 1);
  s.number("epsilon", o.epsilon);
  s.flag("centered", o.centered);
  s.common(o);
}

static void formula(ops::Formula& f, const RMSpropOptions& o) {
  using ops::Term;
  const Term w = f.weight(), g = f.gradient(), v = f.slot("velocity");
  const Term size = o.rho * v + (1 - o.rho) * square(g);
  f.becomes(v, size);
  Term under = size + o.epsilon;
  if (o.centered) {
    const Term average = f.slot("average_gradient");
    const Term mean = o.rho * average + (1 - o.rho) * g;
    f.becomes(average, mean);
    under = size - square(mean) + o.epsilon;
  }
  Term along = f.learning_rate() * g / sqrt(under);
  if (o.momentum > 0) {
    const Term momentum = f.slot("momentum");
    along = o.momentum * momentum + along;
    f.becomes(momentum, along);
  }
  f.becomes(w, w - along);
}

RMSprop::RMSprop(double learning_rate, RMSpropOptions o)
    : Optimizer(train::make_optimizer(learning_rate, std::move(o))) {}
constinit const train::OptimizerKind train::kinds::rmsprop{"RMSprop", train::read_optimizer<RMSprop, RMSpropOptions>};

}  // namespace millpond
