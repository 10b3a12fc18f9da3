// softmax: exp(x - max) / sum along the last axis.
// Memory: no workspace; y may be written over x.
#pragma once
#include "graph/builder.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class Softmax final : public graph::Operator {
 public:
  std::string_view name() const override { return "softmax"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;
  graph::MemoryFacts memory() const override { return {.may_overwrite = {{0, 0}}}; }
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
};

Value softmax(Builder& b, Value x);

}  // namespace millpond::ops
