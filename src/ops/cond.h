// cond: one of two bodies, as a bool says when it runs; the other is not run.
//
//   operands    the bool  | what both bodies read
//   bodies      operands behind the bool  ->  outputs, of the same types in both
//
// Memory: the larger of the two plans as workspace. Gradient: a cond of the bodies' gradients, each of which makes
// again what it reads of its forward body, so that nothing is saved.
#pragma once
#include "ops/flow.h"

namespace millpond::ops {

class Cond final : public graph::Operator {
 public:
  Cond(BodyRef when_true, BodyRef when_false) : yes(std::move(when_true)), no(std::move(when_false)) {}
  std::string_view name() const override { return "cond"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<const Graph*> bodies() const override { return {&yes->graph, &no->graph}; }
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;

  const BodyRef yes, no;
};

std::vector<Value> cond(Builder& b, Value which, std::span<const Value> operands, const Write& yes, const Write& no);

}  // namespace millpond::ops
