#include "ops/batch_norm_backward.h"

#include "ops/batch_norm.h"
#include "ops/binary.h"
#include "ops/check.h"
#include "ops/normalization.h"
#include "ops/unary.h"

namespace millpond::ops {

std::string BatchNormBackward::attributes() const { return format("epsilon={}", epsilon); }

std::vector<TensorType> BatchNormBackward::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 5);
  const TensorType &x = inputs[0], &gamma = inputs[1];
  BatchNorm(epsilon).infer(std::vector{x, gamma, gamma});
  for (int i = 2; i < 5; ++i) {
    static constexpr std::string_view kWhat[] = {"mean", "variance", "dy"};
    require_dtype(name(), kWhat[i - 2], inputs[i], x.dtype);
    require_shape(name(), kWhat[i - 2], inputs[i], i < 4 ? gamma.shape : x.shape);
  }
  return {x, gamma, gamma};
}

std::vector<Value> BatchNormBackward::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  const Value x = node.input(0), gamma = node.input(1), mean = node.input(2), variance = node.input(3),
              dy = node.input(4);
  if (!dys[0] && !dys[1] && !dys[2]) return no_gradients(node);
  const SecondGradients s = normalization_second(b, x, gamma, mean, rsqrt(b, add(b, variance, epsilon)), dy, dys[0],
                                                 dys[1], dys[2], leading_axes(x.shape()));
  return {s.dx, s.dgamma, Value{}, Value{}, s.ddy};
}

double BatchNormBackward::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return 11 * double(inputs[0].shape.size());
}

std::vector<Value> batch_norm_backward(Builder& b, Value x, Value gamma, Value mean, Value variance, Value dy,
                                       double epsilon) {
  return b.add_all(std::make_shared<BatchNormBackward>(epsilon), {x, gamma, mean, variance, dy});
}

}  // namespace millpond::ops
