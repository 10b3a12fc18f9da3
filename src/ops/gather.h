// gather: rows of a table [count, width] by integer index [...]: out [..., width]. An index out of range is clamped; it
// is refused before the step where it comes from a user (label and token checks at staging). Memory: no workspace.
#pragma once
#include "graph/builder.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class Gather final : public graph::Operator {
 public:
  std::string_view name() const override { return "gather"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;
};

Value gather(Builder& b, Value table, Value index);

}  // namespace millpond::ops
