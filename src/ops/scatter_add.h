// scatter_add: a table of zeros [count, width] with every row of `rows` [..., width] added at its index (clamped as
// gather does): the gradient of gather. With a third operand, `onto`, the rows are added to that table instead of
// zeros. Memory: no workspace; the result may be written over `onto`. Rows are added in order, so that sums repeat bit
// for bit.
#pragma once
#include "graph/builder.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class ScatterAdd final : public graph::Operator {
 public:
  explicit ScatterAdd(int64_t n, bool onto_table = false) : count(n), onto(onto_table) {}
  std::string_view name() const override { return "scatter_add"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;
  graph::MemoryFacts memory() const override;

  const int64_t count;
  const bool onto;
};

/// `onto`: [count, width], or null for zeros.
Value scatter_add(Builder& b, Value index, Value rows, int64_t count, Value onto = {});

}  // namespace millpond::ops
