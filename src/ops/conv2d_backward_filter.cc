#include "ops/conv2d_backward_filter.h"

#include "ops/check.h"
#include "ops/conv2d_backward_input.h"

namespace millpond::ops {

std::string Conv2DBackwardFilter::attributes() const {
  return format("{}{} filter={}", to_string(window), groups != 1 ? format(" groups={}", groups) : "", filter);
}

std::vector<TensorType> Conv2DBackwardFilter::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 2);
  const TensorType df{inputs[0].dtype, filter};
  require_dtype(name(), "dy", inputs[1], inputs[0].dtype);
  require_shape(name(), "dy", inputs[1], Conv2D(window, groups).product(inputs[0], df).shape);
  return {df};
}

// Bilinear in x and dy, so its gradients are the other two members of the family.
std::vector<Value> Conv2DBackwardFilter::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  if (!dys[0]) return no_gradients(node);
  const Value x = node.input(0), dy = node.input(1);
  return {conv2d_backward_input(b, dy, dys[0], window, groups, x.shape()), conv2d(b, x, dys[0], window, groups)};
}

double Conv2DBackwardFilter::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return 2.0 * double(inputs[1].shape.size()) * double(filter[0] * filter[1] * filter[2]);
}

Value conv2d_backward_filter(Builder& b, Value x, Value dy, Window window, int64_t groups, Shape filter) {
  return b.add(std::make_shared<Conv2DBackwardFilter>(window, groups, filter), {x, dy});
}

}  // namespace millpond::ops
