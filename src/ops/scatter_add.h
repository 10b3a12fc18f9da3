// scatter_add: a table of zeros [count, width] with every row of `rows` [..., width] added at its index (clamped as gather does):
// the gradient of gather.
// Memory: no workspace; rows are added in order, so that sums repeat bit for bit.
#pragma once
#include "graph/builder.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class ScatterAdd final : public graph::Operator {
 public:
  explicit ScatterAdd(int64_t n) : count(n) {}
  std::string_view name() const override { return "scatter_add"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;

  const int64_t count;
};

Value scatter_add(Builder& b, Value index, Value rows, int64_t count);

}  // namespace millpond::ops
