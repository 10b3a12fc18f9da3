#include "ops/conv_pool_backward_input.h"

#include "ops/check.h"
#include "ops/conv_pool.h"

namespace millpond::ops {

std::string ConvPoolBackwardInput::attributes() const {
  return format("{} pool={} input={}", to_string(window), to_string(pool), input);
}

std::vector<TensorType> ConvPoolBackwardInput::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 3);
  const TensorType dx{inputs[0].dtype, input};
  require_rank(name(), "the filter", inputs[1], 4);
  const TensorType bias{dx.dtype, {inputs[1].shape[3]}};
  const std::vector<TensorType> forward = ConvPool(window, pool).infer(std::vector{dx, inputs[1], bias});
  require_shape(name(), "dpooled", inputs[0], forward[0].shape);
  require_dtype(name(), "winners", inputs[2], forward[1].dtype);
  require_shape(name(), "winners", inputs[2], forward[1].shape);
  return {dx};
}

// As many as a convolution's: where the zeros are is known only when it runs.
double ConvPoolBackwardInput::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  const Shape& f = inputs[1].shape;
  return double(inputs[0].shape.size()) * double(pool.height * pool.width) * 2.0 * double(f[0] * f[1] * f[2]);
}

}  // namespace millpond::ops
