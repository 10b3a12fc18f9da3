// select: condition ? x : y, element by element, with broadcasting; condition is bool.
// Memory: no workspace.
#pragma once
#include "graph/builder.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class Select final : public graph::Operator {
 public:
  std::string_view name() const override { return "select"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;
};

Value select(Builder& b, Value condition, Value x, Value y);

}  // namespace millpond::ops
