#include "ops/batch_norm.h"

#include "ops/batch_norm_backward.h"
#include "ops/check.h"
#include "ops/normalization.h"

namespace millpond::ops {

std::string BatchNorm::attributes() const { return format("epsilon={}", epsilon); }

std::vector<TensorType> BatchNorm::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 3);
  require_floating("batch_norm", "x", inputs[0]);
  const Shape& x = inputs[0].shape;
  if (x.rank() < 2)
    throw Error(Code::kShape, format("batch_norm: x is {}", x))
        .hint("give x a batch dimension and channels: [..., channels]");
  for (int i = 1; i < 3; ++i) {
    require_dtype("batch_norm", i == 1 ? "gamma" : "beta", inputs[i], inputs[0].dtype);
    require_shape("batch_norm", i == 1 ? "gamma" : "beta", inputs[i], {x.back()});
  }
  return {inputs[0], {inputs[0].dtype, {x.back()}}, {inputs[0].dtype, {x.back()}}};
}

std::vector<Value> BatchNorm::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  const Value x = node.input(0), gamma = node.input(1), mean = node.output(1), variance = node.output(2);
  std::vector<Value> grads = no_gradients(node);
  if (dys[0]) grads = batch_norm_backward(b, x, gamma, mean, variance, dys[0], epsilon);
  if (dys[1] || dys[2])
    grads[0] = add_gradients(b, grads[0], statistics_backward(b, x, mean, dys[1], dys[2], leading_axes(x.shape())));
  return grads;
}

double BatchNorm::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return 7 * double(inputs[0].shape.size());
}

std::vector<Value> batch_norm(Builder& b, Value x, Value gamma, Value beta, double epsilon) {
  return b.add_all(std::make_shared<BatchNorm>(epsilon), {x, gamma, beta});
}

}  // namespace millpond::ops
