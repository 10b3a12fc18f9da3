#include "ops/conv_pool_backward.h"

#include "ops/check.h"
#include "ops/conv_pool.h"

namespace millpond::ops {

std::string ConvPoolBackward::attributes() const {
  return format("{} pool={} filter={}", to_string(window), to_string(pool), filter);
}

std::vector<TensorType> ConvPoolBackward::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 3);
  const DType dtype = inputs[0].dtype;
  require_rank(name(), "the filter", {dtype, filter}, 4);
  const TensorType bias{dtype, {filter[3]}};
  const std::vector<TensorType> forward =
      ConvPool(window, pool).infer(std::vector{inputs[0], TensorType{dtype, filter}, bias});
  for (int i = 1; i < 3; ++i) {
    static constexpr std::string_view kWhat[] = {"winners", "dpooled"};
    require_dtype(name(), kWhat[i - 1], inputs[i], forward[i == 1].dtype);
    require_shape(name(), kWhat[i - 1], inputs[i], forward[i == 1].shape);
  }
  return {{dtype, filter}, bias};
}

double ConvPoolBackward::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return double(inputs[2].shape.size()) * (2.0 * double(filter[0] * filter[1] * filter[2]) + 2);
}

}  // namespace millpond::ops
