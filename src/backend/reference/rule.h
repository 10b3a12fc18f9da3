// rule: an optimiser's step on one weight, the formulas of ops/rule.h word for word. Shared by optimizer_step, dense_update and
// dense_backward, and by whoever wants a rule to compare with.
#pragma once
#include <cmath>

#include "backend/reference/types.h"
#include "ops/rule.h"

namespace millpond::backend::reference {

/// Element i of weight and slots (as many as the rule has) after a step along the gradient g; step_size as ops/step_size.h has it.
template <class T>
void apply_rule(const ops::Rule& rule, T* weight, T* const* slots, int64_t i, Number<T> g, const float* step_size) {
  using N = Number<T>;
  const N step = N(step_size[0]), learning_rate = N(step_size[1]);
  N w = load(weight, i);
  if (rule.weight_decay != 0) w -= learning_rate * N(rule.weight_decay) * w;
  switch (rule.kind) {
    case ops::Rule::Kind::kSgd: w -= step * g; break;
    case ops::Rule::Kind::kMomentum: {
      const N momentum = N(rule.momentum);
      const N v = momentum * load(slots[0], i) - step * g;
      w += rule.nesterov ? momentum * v - step * g : v;
      store(slots[0], i, v);
      break;
    }
    case ops::Rule::Kind::kAdam: {
      N m = load(slots[0], i), s = load(slots[1], i);
      m += (g - m) * (1 - N(rule.beta1));
      s += (g * g - s) * (1 - N(rule.beta2));
      w -= step * m / (std::sqrt(s) + N(rule.epsilon));
      store(slots[0], i, m), store(slots[1], i, s);
      break;
    }
  }
  store(weight, i, w);
}

/// Weight and slots are operands `first` and up. The outputs are the operands' own bytes; where a test gave them bytes of
/// their own, they are copied there first.
template <class T>
struct Parameter {
  T* weight;
  T* slots[2];
};
template <class T>
Parameter<T> parameter(const Arguments& a, const ops::Rule& rule, int first_input, int first_output, int64_t size) {
  for (int k = 0; k <= rule.slots(); ++k) {
    const T* from = a.input<T>(first_input + k);
    T* to = a.output<T>(first_output + k);
    if (from != to) std::copy(from, from + size, to);
  }
  Parameter<T> p{a.output<T>(first_output), {nullptr, nullptr}};
  for (int k = 0; k < rule.slots(); ++k) p.slots[k] = a.output<T>(first_output + 1 + k);
  return p;
}

}  // namespace millpond::backend::reference
