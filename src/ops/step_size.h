// step_size: float32[2] = {step, learning rate} for optimizer_step, from the learning rate and the number of steps done before
// this one (int64 scalar). For Adam the step holds both bias corrections: lr sqrt(1 - beta2^t) / (1 - beta1^t), t = steps + 1.
// Memory: none to speak of.
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
  explicit StepSize(Rule r) : rule(r) {}
  std::string_view name() const override { return "step_size"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;

  const Rule rule;
};

Value step_size(Builder& b, Value learning_rate, Value iterations, const Rule& rule);

}  // namespace millpond::ops
