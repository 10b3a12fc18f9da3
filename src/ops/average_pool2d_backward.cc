#include "ops/average_pool2d_backward.h"

#include "ops/average_pool2d.h"
#include "ops/check.h"

namespace millpond::ops {

std::string AveragePool2DBackward::attributes() const { return format("{} input={}", to_string(window), input); }

std::vector<TensorType> AveragePool2DBackward::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 1);
  require_rank(name(), "the input", {inputs[0].dtype, input}, 4);
  require_shape(name(), "dy", inputs[0], windows_of(name(), window, input, input[3]));
  return {{inputs[0].dtype, input}};
}

std::vector<Value> AveragePool2DBackward::backward(Builder& b, const Node&, std::span<const Value> dys) const {
  return {dys[0] ? average_pool2d(b, dys[0], window) : Value{}};  // linear: the gradient is the transpose
}

double AveragePool2DBackward::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return double(inputs[0].shape.size()) * double(window.height * window.width);
}

Value average_pool2d_backward(Builder& b, Value dy, Window window, Shape input) {
  return b.add(std::make_shared<AveragePool2DBackward>(window, input), {dy});
}

}  // namespace millpond::ops
