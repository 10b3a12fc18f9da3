// broadcast_to: x repeated along dimensions of 1 (and new leading ones) to a shape.
// Memory: the full result; passes drop it where the reader broadcasts by itself.
#pragma once
#include "graph/builder.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class BroadcastTo final : public graph::Operator {
 public:
  explicit BroadcastTo(Shape s) : shape(s) {}
  std::string_view name() const override { return "broadcast_to"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;

  const Shape shape;

 protected:
  void add_attributes(graph::Key& key) const override { key.add(shape); }
};

Value broadcast_to(Builder& b, Value x, Shape shape);

}  // namespace millpond::ops
