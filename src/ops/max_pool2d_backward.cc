#include "ops/max_pool2d_backward.h"

#include "ops/check.h"

namespace millpond::ops {

std::string MaxPool2DBackward::attributes() const { return to_string(window); }

std::vector<TensorType> MaxPool2DBackward::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 3);
  require_rank(name(), "x", inputs[0], 4);
  const Shape y = windows_of(name(), window, inputs[0].shape, inputs[0].shape[3]);
  require_shape(name(), "y", inputs[1], y);
  require_shape(name(), "dy", inputs[2], y);
  require_dtype(name(), "y", inputs[1], inputs[0].dtype);
  require_dtype(name(), "dy", inputs[2], inputs[0].dtype);
  return {inputs[0]};
}

std::vector<Value> MaxPool2DBackward::backward(Builder&, const Node& node, std::span<const Value> dys) const {
  if (!dys[0]) return no_gradients(node);
  refuse_gradient(name(), "second derivatives of max-pooling are not there yet");
}

double MaxPool2DBackward::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return double(inputs[1].shape.size()) * double(window.height * window.width);
}

Value max_pool2d_backward(Builder& b, Value x, Value y, Value dy, Window window) {
  return b.add(std::make_shared<MaxPool2DBackward>(window), {x, y, dy});
}

}  // namespace millpond::ops
