// Rule: how an optimiser turns a gradient into a change of a weight. Two formulas, both Expressions, so that every kernel that
// updates weights (optimizer_step, dense_update, dense_backward) takes any rule:
//   update   for each element: registers are the gradient, the weight, its slots, then the step's scalars; results are the weight and
//            the slots after the step.
//   scalars  once a step, in double: registers are the learning rate, the number of the step (1, 2, ...), the optimiser's own numbers;
//            results are the scalars that `update` reads, then the own numbers after the step.
// ops/formula.h writes both from one formula.
#pragma once
#include <string>
#include <vector>

#include "ops/expression.h"

namespace millpond::ops {

struct Rule {
  static constexpr int kMostSlots = 6, kMostScalars = 16;
  struct Kept {
    std::string name;
    double initial = 0;  // before the first step
    bool operator==(const Kept&) const = default;
  };

  std::string name;
  std::vector<Kept> slots;  // one value for each element of a weight
  std::vector<Kept> own;    // one number for all weights together
  bool scaled =
      false;  // the last scalar multiplies the gradient; it does not come from `scalars` but from the gradients' norm
  Expression update, scalars;

  int slot_count() const { return int(slots.size()); }
  /// Those that `update` reads.
  int scalar_count() const { return int(update.inputs.size()) - 2 - slot_count(); }
  /// Those that `scalars` makes.
  int made_scalars() const { return scalar_count() - (scaled ? 1 : 0); }
  /// Instructions that compute something: what an element costs.
  int operations() const;
  bool operator==(const Rule&) const = default;
};
/// "sgd: r3 = multiply(r2.scalar, r0); r4 = subtract(r1, r3); -> r4"
std::string to_string(const Rule& rule);

}  // namespace millpond::ops
