// layer_norm: y = (x - mean) * rstd * gamma + beta over the last axis, rstd = 1 / sqrt(variance + epsilon). Outputs y,
// mean, rstd; operands x, gamma, beta. Memory: two values a row beside y.
#pragma once
#include "graph/builder.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class LayerNorm final : public graph::Operator {
 public:
  explicit LayerNorm(double e) : epsilon(e) {}
  std::string_view name() const override { return "layer_norm"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;

  const double epsilon;
};

std::vector<Value> layer_norm(Builder& b, Value x, Value gamma, Value beta, double epsilon);

}  // namespace millpond::ops
