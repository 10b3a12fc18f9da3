#include "ops/conv_pool.h"

#include <bit>

#include "ops/check.h"

namespace millpond::ops {

std::string ConvPool::attributes() const { return format("{} pool={}", to_string(window), to_string(pool)); }

int ConvPool::winner_bits() const { return std::bit_width(uint64_t(pool.height * pool.width - 1)); }
int64_t ConvPool::winner_bytes(int64_t channels) const { return (channels + 15) / 16 * 2 * winner_bits(); }

std::vector<TensorType> ConvPool::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 3);
  const TensorType y = Conv2D(window).product(inputs[0], inputs[1]);
  require_dtype("conv_pool", "bias", inputs[2], y.dtype);
  require_shape("conv_pool", "bias", inputs[2], {y.shape[3]});
  Window plain{.height = pool.height, .width = pool.width, .stride_h = pool.height, .stride_w = pool.width};
  if (pool != plain)
    throw Error(Code::kUnsupported, format("conv_pool: a pool {}", to_string(pool)))
        .hint("only pools that neither overlap nor pad are fused");
  const Shape pooled = windows_of("conv_pool", pool, y.shape, y.shape[3]);
  return {{y.dtype, pooled}, {DType::kUInt8, pooled.with(3, winner_bytes(y.shape[3]))}};
}

double ConvPool::flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const {
  const Shape& f = inputs[1].shape;
  return double(outputs[0].shape.size()) * double(pool.height * pool.width) * (2.0 * double(f[0] * f[1] * f[2]) + 3);
}

}  // namespace millpond::ops
