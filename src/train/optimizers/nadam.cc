#include "train/optimizers/kind.h"

namespace millpond {

static void settings(const train::Settings& s, NadamOptions& o) {
  s.number("beta_1", o.beta_1, 0, 1);
  s.number("beta_2", o.beta_2, 0, 1);
  s.number("epsilon", o.epsilon);
  s.common(o);
}

// The momentum grows from step to step; u_product is the product of all so far.
static void formula(ops::Formula& f, const NadamOptions& o) {
  using ops::Term;
  const Term w = f.weight(), g = f.gradient(), m = f.slot("momentum"), v = f.slot("velocity"), t = f.step(),
             u_product = f.number("u_product", 1);
  const Term decay = power(0.96, t);
  const Term u = o.beta_1 * (1 - 0.5 * decay), next_u = o.beta_1 * (1 - 0.5 * 0.96 * decay);
  const Term product = u_product * u;
  f.becomes(u_product, product);
  const Term mean = m + (g - m) * (1 - o.beta_1), size = v + (square(g) - v) * (1 - o.beta_2);
  f.becomes(m, mean);
  f.becomes(v, size);
  const Term rate = f.learning_rate(), of_mean = rate * next_u / (1 - product * next_u),
             of_gradient = rate * (1 - u) / (1 - product);
  f.becomes(w, w - (of_mean * mean + of_gradient * g) / (sqrt(size / (1 - power(o.beta_2, t))) + o.epsilon));
}

Nadam::Nadam(double learning_rate, NadamOptions o) : Optimizer(train::make_optimizer(learning_rate, std::move(o))) {}
constinit const train::OptimizerKind train::kinds::nadam{"Nadam", train::read_optimizer<Nadam, NadamOptions>};

}  // namespace millpond
