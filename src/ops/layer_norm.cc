#include "ops/layer_norm.h"

#include "ops/binary.h"
#include "ops/check.h"
#include "ops/layer_norm_backward.h"
#include "ops/normalization.h"
#include "ops/reshape.h"
#include "ops/unary.h"

namespace millpond::ops {

std::string LayerNorm::attributes() const { return format("epsilon={}", epsilon); }

std::vector<TensorType> LayerNorm::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 3);
  require_floating("layer_norm", "x", inputs[0]);
  const Shape& x = inputs[0].shape;
  if (x.rank() < 1) throw Error(Code::kShape, "layer_norm: x is a scalar").hint("give x a last axis to normalise over");
  for (int i = 1; i < 3; ++i) {
    require_dtype("layer_norm", i == 1 ? "gamma" : "beta", inputs[i], inputs[0].dtype);
    require_shape("layer_norm", i == 1 ? "gamma" : "beta", inputs[i], {x.back()});
  }
  const TensorType row{inputs[0].dtype, x.without(-1)};
  return {inputs[0], row, row};
}

std::vector<Value> LayerNorm::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  const Value x = node.input(0), gamma = node.input(1), mean = node.output(1), rstd = node.output(2);
  std::vector<Value> grads = no_gradients(node);
  if (dys[0]) grads = layer_norm_backward(b, x, gamma, mean, rstd, dys[0]);
  if (dys[1] || dys[2]) {
    const Shape column = x.shape().with(-1, 1);
    auto shaped = [&](Value v) { return v ? reshape(b, v, column) : v; };
    // d rstd / d variance = -rstd^3 / 2
    const Value dvariance =
        dys[2] ? multiply(b, multiply(b, dys[2], -0.5), multiply(b, rstd, square(b, rstd))) : Value{};
    grads[0] = add_gradients(
        b, grads[0],
        statistics_backward(b, x, shaped(mean), shaped(dys[1]), shaped(dvariance), {x.shape().rank() - 1}));
  }
  return grads;
}

double LayerNorm::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return 7 * double(inputs[0].shape.size());
}

std::vector<Value> layer_norm(Builder& b, Value x, Value gamma, Value beta, double epsilon) {
  return b.add_all(std::make_shared<LayerNorm>(epsilon), {x, gamma, beta});
}

}  // namespace millpond::ops
