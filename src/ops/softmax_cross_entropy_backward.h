// softmax_cross_entropy_backward: dz = (softmax(z) - one_hot(label)) * dloss, operands logits, labels, dloss.
// Memory: no workspace; dz may be written over the logits, which for a language model is the largest saving there is.
#pragma once
#include "graph/builder.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class SoftmaxCrossEntropyBackward final : public graph::Operator {
 public:
  std::string_view name() const override { return "softmax_cross_entropy_backward"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;
  graph::MemoryFacts memory() const override { return {.may_overwrite = {{0, 0}}}; }
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
};

Value softmax_cross_entropy_backward(Builder& b, Value logits, Value labels, Value dloss);

}  // namespace millpond::ops
