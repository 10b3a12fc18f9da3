// conv2d: y[n, i, j, o] = sum over taps of x[n, i*sh + p*dh - top, j*sw + q*dw - left, c] * filter[p, q, c, o]; images
// are NHWC, filters [height, width, in/groups, out] as in Keras. An epilogue, if any, is applied to each tile of y
// before it is stored (register 0 is y, rows are pixels, columns are channels). Memory: workspace asked of the kernel.
#pragma once
#include "graph/builder.h"
#include "ops/expression.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

struct Window {                   // geometry of convolution and pooling
  int64_t height = 1, width = 1;  // of the kernel or pool; of a convolution: taken from the filter
  int64_t stride_h = 1, stride_w = 1;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t top = 0, bottom = 0, left = 0, right = 0;  // padding
  bool operator==(const Window&) const = default;
  int64_t out_height(int64_t in) const { return (in + top + bottom - dilation_h * (height - 1) - 1) / stride_h + 1; }
  int64_t out_width(int64_t in) const { return (in + left + right - dilation_w * (width - 1) - 1) / stride_w + 1; }
  /// Padding "same" as TensorFlow has it: ceil(in / stride) out, the odd one at the end.
  void pad_same(int64_t in_height, int64_t in_width);
};
std::string to_string(const Window& w);

class Conv2D final : public graph::Operator {
 public:
  Conv2D(Window w, int64_t g = 1, Expression e = {}) : window(w), groups(g), epilogue(std::move(e)) {}
  TensorType product(const TensorType& x, const TensorType& filter) const;
  std::string_view name() const override { return "conv2d"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;

  const Window window;
  const int64_t groups;
  const Expression epilogue;
};

/// window.height and width are taken from the filter.
Value conv2d(Builder& b, Value x, Value filter, Window window, int64_t groups = 1);

}  // namespace millpond::ops
