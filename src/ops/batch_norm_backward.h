// batch_norm_backward: dx, dgamma, dbeta from x, gamma, mean, variance, dy (gradients through mean and variance
// included). Memory: partial sums as workspace; dx may be written over dy.
#pragma once
#include "graph/builder.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class BatchNormBackward final : public graph::Operator {
 public:
  explicit BatchNormBackward(double e) : epsilon(e) {}
  std::string_view name() const override { return "batch_norm_backward"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;
  graph::MemoryFacts memory() const override { return {.may_overwrite = {{0, 4}}}; }
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;

  const double epsilon;
};

std::vector<Value> batch_norm_backward(Builder& b, Value x, Value gamma, Value mean, Value variance, Value dy,
                                       double epsilon);

}  // namespace millpond::ops
