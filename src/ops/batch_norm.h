// batch_norm: y = (x - mean) / sqrt(variance + epsilon) * gamma + beta with mean and (biased) variance of this batch
// over all but the last axis. Outputs y, mean, variance; operands x, gamma, beta. Memory: two values a channel beside
// y; partial sums as workspace.
#pragma once
#include "graph/builder.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class BatchNorm final : public graph::Operator {
 public:
  explicit BatchNorm(double e) : epsilon(e) {}
  std::string_view name() const override { return "batch_norm"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;

  const double epsilon;
};

std::vector<Value> batch_norm(Builder& b, Value x, Value gamma, Value beta, double epsilon);

}  // namespace millpond::ops
