#include "ops/max_pool2d_backward.h"

#include "ops/check.h"
#include "ops/max_pool2d.h"

namespace millpond::ops {

std::string MaxPool2DBackward::attributes() const { return to_string(window); }

std::vector<TensorType> MaxPool2DBackward::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 2);
  const Shape y = windows_of(name(), window, shape, shape[3]);
  require_shape(name(), "winners", inputs[0], y);
  require_dtype(name(), "winners", inputs[0], MaxPool2D(window).winner_dtype());
  require_shape(name(), "dy", inputs[1], y);
  require_floating(name(), "dy", inputs[1]);
  return {{inputs[1].dtype, shape}};
}

std::vector<Value> MaxPool2DBackward::backward(Builder&, const Node& node, std::span<const Value> dys) const {
  if (!dys[0]) return no_gradients(node);
  refuse_gradient(name(), "second derivatives of max-pooling are not there yet");
}

double MaxPool2DBackward::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return double(inputs[1].shape.size()) * double(window.height * window.width);
}

Value max_pool2d_backward(Builder& b, Value winners, Value dy, Window window, Shape x) {
  return b.add(std::make_shared<MaxPool2DBackward>(window, x), {winners, dy});
}

}  // namespace millpond::ops
