// step_size: the scalars of a step (Rule::scalars): how far to go, with the corrections that depend on the number of
// the step. Operands: learning rate (float32), steps done before this one (int64), the rule's own numbers (float32
// each), all scalars. Outputs: the scalars that a step reads, n of the rule's dtype, then the own numbers after the
// step. Computed in double. Memory: none to speak of.
#pragma once
#include "graph/builder.h"
#include "ops/rule.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class StepSize final : public graph::Operator {
 public:
  explicit StepSize(Rule r) : rule(std::move(r)) {}
  std::string_view name() const override { return "step_size"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;

  const Rule rule;
};

/// Returns the scalars, then the rule's own numbers after the step.
std::vector<Value> step_size(Builder& b, const Rule& rule, Value learning_rate, Value iterations,
                             const std::vector<Value>& own = {});

}  // namespace millpond::ops
