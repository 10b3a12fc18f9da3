// optimizer_step: one pass over weight, slots and gradient, all updated in place. Operands: weight, slots (see Rule),
// gradient, the step's scalars (float32, as many as the rule reads); outputs: weight, slots. Memory: none: outputs are
// the operands' bytes.
#pragma once
#include "graph/builder.h"
#include "ops/rule.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class OptimizerStep final : public graph::Operator {
 public:
  explicit OptimizerStep(Rule r) : rule(std::move(r)) {}
  std::string_view name() const override { return "optimizer_step"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;
  graph::MemoryFacts memory() const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;

  const Rule rule;
};

/// Returns weight and slots after the step.
std::vector<Value> optimizer_step(Builder& b, const Rule& rule, Value weight, std::vector<Value> slots, Value gradient,
                                  Value scalars);

}  // namespace millpond::ops
