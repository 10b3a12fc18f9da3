#include "ops/conv2d_backward_input.h"

#include "ops/check.h"
#include "ops/conv2d_backward_filter.h"

namespace millpond::ops {

std::string Conv2DBackwardInput::attributes() const {
  return format("{}{} input={}", to_string(window), groups != 1 ? format(" groups={}", groups) : "", input);
}

std::vector<TensorType> Conv2DBackwardInput::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 2);
  const TensorType dx{inputs[0].dtype, input};
  require_shape(name(), "dy", inputs[0], Conv2D(window, groups).product(dx, inputs[1]).shape);
  return {dx};
}

// Bilinear in dy and the filter, so its gradients are the other two members of the family.
std::vector<Value> Conv2DBackwardInput::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  if (!dys[0]) return no_gradients(node);
  const Value dy = node.input(0), filter = node.input(1);
  return {conv2d(b, dys[0], filter, window, groups),
          conv2d_backward_filter(b, dys[0], dy, window, groups, filter.shape())};
}

double Conv2DBackwardInput::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  const Shape& f = inputs[1].shape;
  return 2.0 * double(inputs[0].shape.size()) * double(f[0] * f[1] * f[2]);
}

Value conv2d_backward_input(Builder& b, Value dy, Value filter, Window window, int64_t groups, Shape input) {
  return b.add(std::make_shared<Conv2DBackwardInput>(window, groups, input), {dy, filter});
}

}  // namespace millpond::ops
