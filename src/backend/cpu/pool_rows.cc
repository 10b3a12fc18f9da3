#include "backend/cpu/pool_rows.h"

#include "backend/cpu/conv_pool_tile.h"

namespace millpond::backend::cpu {

PoolRows::PoolRows(const ops::Window& pool, const Shape& pooled)
    : pool_h(pool.height),
      pool_w(pool.width),
      rows(pooled[1]),
      cols(pooled[2]),
      channels(pooled[3]),
      bits(ops::ConvPool({}, pool).winner_bits()) {}

void PoolRows::pool(const float* tile, int64_t pixel, int64_t first, int64_t last, int64_t begin, int64_t count,
                    const float* bias, float* pooled, uint8_t* winners) const {
  for (int64_t r = first; r < last; ++r, tile += pool_h * width() * pixel)
    pool_tile_table().pool({pool_h, pool_w, bits, cols, count, pixel, width() * pixel, channels, masks()}, tile,
                           bias + begin, pooled + r * cols * channels + begin,
                           reinterpret_cast<uint16_t*>(winners) + r * cols * masks() + begin / 16 * bits);
}

void PoolRows::spread(float* to, int64_t pixel, int64_t row, int64_t first, int64_t last, int64_t begin, int64_t count,
                      const float* dpooled, const uint8_t* winners) const {
  const int64_t cell = row / pool_h * cols + first;
  pool_tile_table().spread({pool_h, pool_w, bits, last - first, count, pixel, width() * pixel, channels, masks()}, to,
                           row % pool_h, dpooled + cell * channels + begin,
                           reinterpret_cast<const uint16_t*>(winners) + cell * masks() + begin / 16 * bits);
}

}  // namespace millpond::backend::cpu
