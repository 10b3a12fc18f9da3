// argmax: index of the first largest element along the last axis, int32; that axis goes.
// Memory: no workspace.
#pragma once
#include "graph/builder.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class ArgMax final : public graph::Operator {
 public:
  std::string_view name() const override { return "argmax"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;
};

Value argmax(Builder& b, Value x);

}  // namespace millpond::ops
