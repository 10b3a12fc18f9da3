// softmax_cross_entropy: loss[i] = log(sum exp z[i]) - z[i, label[i]], for logits [..., classes] and integer labels
// [...]. Memory: no workspace; probabilities are not stored.
#pragma once
#include "graph/builder.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class SoftmaxCrossEntropy final : public graph::Operator {
 public:
  std::string_view name() const override { return "softmax_cross_entropy"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
};

Value softmax_cross_entropy(Builder& b, Value logits, Value labels);

}  // namespace millpond::ops
