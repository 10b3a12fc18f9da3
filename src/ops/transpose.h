// transpose: dimensions in another order: y.shape[i] = x.shape[order[i]].
// Memory: no workspace; a copy.
#pragma once
#include "graph/builder.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class Transpose final : public graph::Operator {
 public:
  explicit Transpose(std::vector<int> o) : order(std::move(o)) {}
  std::string_view name() const override { return "transpose"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;

  const std::vector<int> order;

 protected:
  void add_attributes(graph::Key& key) const override { key.add(std::span<const int>(order)); }
};

Value transpose(Builder& b, Value x, std::vector<int> order);

}  // namespace millpond::ops
