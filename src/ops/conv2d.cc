#include "ops/conv2d.h"

#include <algorithm>

#include "ops/check.h"
#include "ops/conv2d_backward_filter.h"
#include "ops/conv2d_backward_input.h"

namespace millpond::ops {

void Window::pad_same(int64_t in_height, int64_t in_width) {
  auto total = [](int64_t in, int64_t size, int64_t stride, int64_t dilation) {
    const int64_t out = (in + stride - 1) / stride;
    return std::max<int64_t>(0, (out - 1) * stride + dilation * (size - 1) + 1 - in);
  };
  const int64_t vertical = total(in_height, height, stride_h, dilation_h),
                horizontal = total(in_width, width, stride_w, dilation_w);
  top = vertical / 2, bottom = vertical - top;
  left = horizontal / 2, right = horizontal - left;
}

std::string to_string(const Window& w) {
  std::string text = format("{}x{}", w.height, w.width);
  if (w.stride_h != 1 || w.stride_w != 1) text += format(" strides={}x{}", w.stride_h, w.stride_w);
  if (w.dilation_h != 1 || w.dilation_w != 1) text += format(" dilation={}x{}", w.dilation_h, w.dilation_w);
  if (w.top || w.bottom || w.left || w.right) text += format(" padding={},{},{},{}", w.top, w.bottom, w.left, w.right);
  return text;
}

std::string Conv2D::attributes() const {
  return format("{}{}{}", to_string(window), groups != 1 ? format(" groups={}", groups) : "",
                epilogue.empty() ? "" : " epilogue: " + to_string(epilogue));
}

TensorType Conv2D::product(const TensorType& x, const TensorType& filter) const {
  require_floating("conv2d", "x", x);
  if (x.dtype != filter.dtype)
    throw Error(Code::kDType, format("conv2d: x is {}, but the filter is {}", to_string(x), to_string(filter)))
        .hint("cast one of them");
  require_rank("conv2d", "x", x, 4);
  require_rank("conv2d", "the filter", filter, 4);
  const Shape& f = filter.shape;
  const int64_t channels = x.shape[3];
  if (groups < 1 || channels % groups || f[3] % groups)
    throw Error(
        Code::kShape,
        format("conv2d: {} groups divide neither or only one of the {} channels of x {} and the {} of the filter {}",
               groups, channels, x.shape, f[3], f))
        .hint("choose a number that divides both");
  if (f[2] * groups != channels)
    throw Error(Code::kShape, format("conv2d: x {} has {} channels, but the filter {} in {} group{} wants {}", x.shape,
                                     channels, f, groups, groups == 1 ? "" : "s", f[2] * groups))
        .hint(format("give the filter the shape {}", f.with(2, channels / groups)));
  if (window.height != f[0] || window.width != f[1])
    throw Error(Code::kShape,
                format("conv2d: the window is {} x {}, but the filter is {}", window.height, window.width, f))
        .hint("take the window's size from the filter");
  return {x.dtype, windows_of("conv2d", window, x.shape, f[3])};
}

std::vector<TensorType> Conv2D::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() >= 2 && (inputs.size() == 2 || !epilogue.empty()));
  const TensorType y = product(inputs[0], inputs[1]);
  if (epilogue.empty()) return {y};
  return infer_epilogue("conv2d", epilogue, y, inputs.subspan(2));
}

std::vector<Value> Conv2D::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  if (!epilogue.empty()) return Operator::backward(b, node, dys);
  if (!dys[0]) return no_gradients(node);
  const Value x = node.input(0), filter = node.input(1);
  return {conv2d_backward_input(b, dys[0], filter, window, groups, x.shape()),
          conv2d_backward_filter(b, x, dys[0], window, groups, filter.shape())};
}

double Conv2D::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  const Shape& f = inputs[1].shape;
  const double size = double(product(inputs[0], inputs[1]).shape.size());
  return size * (2.0 * double(f[0] * f[1] * f[2]) + double(epilogue.code.size()));
}

Value conv2d(Builder& b, Value x, Value filter, Window window, int64_t groups) {
  if (filter.shape().rank() == 4) window.height = filter.shape()[0], window.width = filter.shape()[1];
  return b.add(std::make_shared<Conv2D>(window, groups), {x, filter});
}

}  // namespace millpond::ops
