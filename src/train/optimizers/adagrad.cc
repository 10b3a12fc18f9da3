#include "train/optimizers/kind.h"

namespace millpond {

static void settings(const train::Settings& s, AdagradOptions& o) {
  s.number("initial_accumulator_value", o.initial_accumulator_value);
  s.number("epsilon", o.epsilon);
  s.common(o);
}

static void formula(ops::Formula& f, const AdagradOptions& o) {
  const ops::Term w = f.weight(), g = f.gradient(), sum = f.slot("accumulator", o.initial_accumulator_value);
  const ops::Term more = sum + square(g);
  f.becomes(sum, more);
  f.becomes(w, w - f.learning_rate() * g / sqrt(more + o.epsilon));
}

Adagrad::Adagrad(double learning_rate, AdagradOptions o)
    : Optimizer(train::make_optimizer(learning_rate, std::move(o))) {}
constinit const train::OptimizerKind train::kinds::adagrad{"Adagrad", train::read_optimizer<Adagrad, AdagradOptions>};

}  // namespace millpond
