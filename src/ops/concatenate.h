// concatenate: operands one after the other along an axis.
// Memory: no workspace; a copy.
#pragma once
#include "graph/builder.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class Concatenate final : public graph::Operator {
 public:
  explicit Concatenate(int a) : axis(a) {}
  std::string_view name() const override { return "concatenate"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;

  const int axis;

 protected:
  void add_attributes(graph::Key& key) const override { key.add(uint64_t(axis)); }
};

Value concatenate(Builder& b, std::vector<Value> xs, int axis);

}  // namespace millpond::ops
