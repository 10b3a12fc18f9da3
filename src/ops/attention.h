// attention: out = softmax(scale * q k^T, masked if causal) v for q, k, v [batch, heads, length, width], in tiles: the
// score matrix is never stored. Outputs out and the log-sum-exp of each score row [batch, heads, length], which
// backward needs. Memory: tiles of scores as workspace, one a thread.
#pragma once
#include "graph/builder.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class Attention final : public graph::Operator {
 public:
  Attention(bool c, double s) : causal(c), scale(s) {}
  std::string_view name() const override { return "attention"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;

  const bool causal;
  const double scale;
};

std::vector<Value> attention(Builder& b, Value q, Value k, Value v, bool causal, double scale);

}  // namespace millpond::ops
