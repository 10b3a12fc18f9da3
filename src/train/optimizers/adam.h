// Adam and AdamW differ in a default only.
#pragma once
#include "train/optimizers/kind.h"

namespace millpond::train {

template <class Options>
void adam_settings(const Settings& s, Options& o) {
  s.number("beta_1", o.beta_1, 0, 1);
  s.number("beta_2", o.beta_2, 0, 1);
  s.number("epsilon", o.epsilon);
  s.common(o);
}

// Both bias corrections lie in the step's size.
template <class Options>
void adam_formula(ops::Formula& f, const Options& o) {
  const ops::Term w = f.weight(), g = f.gradient(), m = f.slot("m"), v = f.slot("v"), t = f.step();
  const ops::Term size = f.learning_rate() * sqrt(1 - power(o.beta_2, t)) / (1 - power(o.beta_1, t));
  const ops::Term first = m + (g - m) * (1 - o.beta_1), second = v + (square(g) - v) * (1 - o.beta_2);
  f.becomes(m, first);
  f.becomes(v, second);
  f.becomes(w, w - size * first / (sqrt(second) + o.epsilon));
}

}  // namespace millpond::train
