// average_pool2d_backward: dx from dy.
// Memory: no workspace.
#pragma once
#include "ops/conv2d.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class AveragePool2DBackward final : public graph::Operator {
 public:
  AveragePool2DBackward(Window w, Shape in) : window(w), input(in) {}
  std::string_view name() const override { return "average_pool2d_backward"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;

  const Window window;
  const Shape input;
};

Value average_pool2d_backward(Builder& b, Value dy, Window window, Shape input);

}  // namespace millpond::ops
