#include "ops/max_pool2d.h"

#include "ops/check.h"
#include "ops/max_pool2d_backward.h"

namespace millpond::ops {

std::string MaxPool2D::attributes() const { return to_string(window); }

std::vector<TensorType> MaxPool2D::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 1);
  require_floating("max_pool2d", "x", inputs[0]);
  require_rank("max_pool2d", "x", inputs[0], 4);
  const Shape y = windows_of("max_pool2d", window, inputs[0].shape, inputs[0].shape[3]);
  return {{inputs[0].dtype, y}, {winner_dtype(), y}};
}

std::vector<Value> MaxPool2D::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  return {dys[0] ? max_pool2d_backward(b, node.output(1), dys[0], window, node.input(0).shape()) : Value{}};
}

double MaxPool2D::flops(std::span<const TensorType>, std::span<const TensorType> outputs) const {
  return double(outputs[0].shape.size()) * double(window.height * window.width);
}

Value max_pool2d(Builder& b, Value x, Window window) { return b.add_all(std::make_shared<MaxPool2D>(window), {x})[0]; }

}  // namespace millpond::ops
