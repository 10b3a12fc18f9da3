#include "ops/max_pool2d.h"

#include "ops/check.h"
#include "ops/max_pool2d_backward.h"

namespace millpond::ops {

std::string MaxPool2D::attributes() const { return to_string(window); }

std::vector<TensorType> MaxPool2D::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 1);
  require_floating("max_pool2d", "x", inputs[0]);
  require_rank("max_pool2d", "x", inputs[0], 4);
  return {{inputs[0].dtype, windows_of("max_pool2d", window, inputs[0].shape, inputs[0].shape[3])}};
}

std::vector<Value> MaxPool2D::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  return {dys[0] ? max_pool2d_backward(b, node.input(0), node.output(), dys[0], window) : Value{}};
}

double MaxPool2D::flops(std::span<const TensorType>, std::span<const TensorType> outputs) const {
  return double(outputs[0].shape.size()) * double(window.height * window.width);
}

Value max_pool2d(Builder& b, Value x, Window window) { return b.add(std::make_shared<MaxPool2D>(window), {x}); }

}  // namespace millpond::ops
