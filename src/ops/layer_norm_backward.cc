#include "ops/layer_norm_backward.h"

#include "ops/check.h"
#include "ops/layer_norm.h"
#include "ops/normalization.h"
#include "ops/reshape.h"

namespace millpond::ops {

std::vector<TensorType> LayerNormBackward::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 5);
  const TensorType &x = inputs[0], &gamma = inputs[1];
  const TensorType row = LayerNorm(0).infer(std::vector{x, gamma, gamma})[1];
  for (int i = 2; i < 5; ++i) {
    static constexpr std::string_view kWhat[] = {"mean", "rstd", "dy"};
    require_dtype(name(), kWhat[i - 2], inputs[i], x.dtype);
    require_shape(name(), kWhat[i - 2], inputs[i], i < 4 ? row.shape : x.shape);
  }
  return {x, gamma, gamma};
}

std::vector<Value> LayerNormBackward::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  if (!dys[0] && !dys[1] && !dys[2]) return no_gradients(node);
  const Value x = node.input(0), gamma = node.input(1), dy = node.input(4);
  const Shape column = x.shape().with(-1, 1);
  const SecondGradients s =
      normalization_second(b, x, gamma, reshape(b, node.input(2), column), reshape(b, node.input(3), column), dy,
                           dys[0], dys[1], dys[2], {x.shape().rank() - 1});
  return {s.dx, s.dgamma, Value{}, Value{}, s.ddy};
}

double LayerNormBackward::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return 11 * double(inputs[0].shape.size());
}

std::vector<Value> layer_norm_backward(Builder& b, Value x, Value gamma, Value mean, Value rstd, Value dy) {
  return b.add_all(std::make_shared<LayerNormBackward>(), {x, gamma, mean, rstd, dy});
}

}  // namespace millpond::ops
