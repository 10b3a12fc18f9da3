// conv2d_backward_filter: the gradient of the filter from x and dy.
// Memory: workspace asked of the kernel (partial sums a thread).
#pragma once
#include "ops/conv2d.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class Conv2DBackwardFilter final : public graph::Operator {
 public:
  Conv2DBackwardFilter(Window w, int64_t g, Shape f) : window(w), groups(g), filter(f) {}
  std::string_view name() const override { return "conv2d_backward_filter"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;

  const Window window;
  const int64_t groups;
  const Shape filter;
};

Value conv2d_backward_filter(Builder& b, Value x, Value dy, Window window, int64_t groups, Shape filter);

}  // namespace millpond::ops
