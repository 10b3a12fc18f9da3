#include "ops/average_pool2d.h"

#include "ops/average_pool2d_backward.h"
#include "ops/check.h"

namespace millpond::ops {

std::string AveragePool2D::attributes() const { return to_string(window); }

std::vector<TensorType> AveragePool2D::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 1);
  require_floating("average_pool2d", "x", inputs[0]);
  require_rank("average_pool2d", "x", inputs[0], 4);
  return {{inputs[0].dtype, windows_of("average_pool2d", window, inputs[0].shape, inputs[0].shape[3])}};
}

std::vector<Value> AveragePool2D::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  return {dys[0] ? average_pool2d_backward(b, dys[0], window, node.input(0).shape()) : Value{}};
}

double AveragePool2D::flops(std::span<const TensorType>, std::span<const TensorType> outputs) const {
  return double(outputs[0].shape.size()) * double(window.height * window.width);
}

Value average_pool2d(Builder& b, Value x, Window window) { return b.add(std::make_shared<AveragePool2D>(window), {x}); }

}  // namespace millpond::ops
