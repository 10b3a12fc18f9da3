// max_pool2d_backward: dx gets dy at the winner of each window; operands: max_pool2d's winners, and dy.
// Memory: no workspace.
#pragma once
#include "ops/conv2d.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class MaxPool2DBackward final : public graph::Operator {
 public:
  MaxPool2DBackward(Window w, Shape x) : window(w), shape(x) {}
  std::string_view name() const override { return "max_pool2d_backward"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;

  const Window window;
  const Shape shape;  // of x
};

Value max_pool2d_backward(Builder& b, Value winners, Value dy, Window window, Shape x);

}  // namespace millpond::ops
