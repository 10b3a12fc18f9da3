// reshape: the same elements in row-major order under another shape.
// Memory: none: a view.
#pragma once
#include "graph/builder.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class Reshape final : public graph::Operator {
 public:
  explicit Reshape(Shape s) : shape(s) {}
  std::string_view name() const override { return "reshape"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;
  graph::MemoryFacts memory() const override { return {.view = true}; }

  const Shape shape;

 protected:
  void add_attributes(graph::Key& key) const override { key.add(shape); }
};

Value reshape(Builder& b, Value x, Shape shape);

}  // namespace millpond::ops
