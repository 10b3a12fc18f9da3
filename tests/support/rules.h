// Rules for tests of operators and passes, which know nothing of train/: the formulas of SGD, momentum and Adam, and
// one that no kernel has written out, with three slots, two numbers for each step and one of its own.
#pragma once
#include "ops/formula.h"

namespace millpond::test {

inline ops::Rule sgd_rule(ops::Formula::Before before = {}) {
  ops::Formula f("sgd", before);
  const ops::Term w = f.weight();
  f.becomes(w, w - f.learning_rate() * f.gradient());
  return f.rule();
}

inline ops::Rule momentum_rule(double momentum, bool nesterov = false, ops::Formula::Before before = {}) {
  ops::Formula f(nesterov ? "nesterov" : "momentum", before);
  const ops::Term w = f.weight(), v = f.slot("momentum"), along = f.learning_rate() * f.gradient();
  const ops::Term after = momentum * v - along;
  f.becomes(v, after);
  f.becomes(w, nesterov ? w + (momentum * after - along) : w + after);
  return f.rule();
}

inline ops::Rule adam_rule(ops::Formula::Before before = {}, double beta_1 = 0.9, double beta_2 = 0.999) {
  ops::Formula f("adam", before);
  const ops::Term w = f.weight(), g = f.gradient(), m = f.slot("m"), v = f.slot("v"), t = f.step();
  const ops::Term size = f.learning_rate() * sqrt(1 - power(beta_2, t)) / (1 - power(beta_1, t));
  const ops::Term first = m + (g - m) * (1 - beta_1), second = v + (square(g) - v) * (1 - beta_2);
  f.becomes(m, first);
  f.becomes(v, second);
  f.becomes(w, w - size * first / (sqrt(second) + 1e-7));
  return f.rule();
}

inline ops::Rule odd_rule(ops::Formula::Before before = {}) {
  ops::Formula f("odd", before);
  const ops::Term w = f.weight(), g = f.gradient(), a = f.slot("a"), b = f.slot("b", 0.5), c = f.slot("c"),
                  own = f.number("own", 2);
  const ops::Term next = own * (1 - power(0.5, f.step()));
  f.becomes(own, next);
  const ops::Term size = 0.9 * a + 0.1 * square(g), sum = b + abs(g), way = 0.5 * c + next * g / sqrt(size + 0.01);
  f.becomes(a, size);
  f.becomes(b, sum);
  f.becomes(c, way);
  f.becomes(w, w - f.learning_rate() * (way + sign(g) / sum));
  return f.rule();
}

}  // namespace millpond::test
