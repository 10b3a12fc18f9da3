// max_pool2d: the largest value of each window, NHWC; padding never wins. Outputs: the values, and the winners: the
// place in its window (row * width + column) of the first largest, uint8, or int32 for windows of more than 256. A NaN
// wins over all before it. Memory: no workspace. Backward needs the winners only, a quarter of the values' bytes; the
// image need not be kept.
#pragma once
#include "ops/conv2d.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class MaxPool2D final : public graph::Operator {
 public:
  explicit MaxPool2D(Window w) : window(w) {}
  std::string_view name() const override { return "max_pool2d"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;

  const Window window;
  DType winner_dtype() const { return window.height * window.width <= 256 ? DType::kUInt8 : DType::kInt32; }
};

Value max_pool2d(Builder& b, Value x, Window window);

}  // namespace millpond::ops
