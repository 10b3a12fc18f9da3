// conv2d_backward_input: dx from dy [n, i, j, o] and the filter.
// Memory: workspace asked of the kernel.
#pragma once
#include "ops/conv2d.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class Conv2DBackwardInput final : public graph::Operator {
 public:
  Conv2DBackwardInput(Window w, int64_t g, Shape in) : window(w), groups(g), input(in) {}
  std::string_view name() const override { return "conv2d_backward_input"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;

  const Window window;
  const int64_t groups;
  const Shape input;  // of dx
};

Value conv2d_backward_input(Builder& b, Value dy, Value filter, Window window, int64_t groups, Shape input);

}  // namespace millpond::ops
