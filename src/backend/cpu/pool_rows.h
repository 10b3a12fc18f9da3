// PoolRows: from rows of a convolution's output to the rows of cells that conv_pool keeps of them, and back. Rows of
// pixels and of cells are counted over all images; rows and columns that the pool leaves over do not exist here.
#pragma once
#include <cstdint>

#include "ops/conv_pool.h"

namespace millpond::backend::cpu {

struct PoolRows {
  PoolRows(const ops::Window& pool, const Shape& pooled);

  int64_t pool_h, pool_w;
  int64_t rows, cols, channels;  // cells of an image
  int bits;                      // masks for each 16 channels
  int64_t height() const { return rows * pool_h; }
  int64_t width() const { return cols * pool_w; }

  /// Rows [first, last) of cells and `count` channels from `begin`, a multiple of 16. `tile`: their pixels, `pixel`
  /// floats apart, a multiple of 16; `pooled`, `winners` and `bias`: the operator's.
  void pool(const float* tile, int64_t pixel, int64_t first, int64_t last, int64_t begin, int64_t count,
            const float* bias, float* pooled, uint8_t* winners) const;
  /// The gradient of row `row` of pixels, under the cells [first, last) of its row: zeros but for the winners.
  void spread(float* to, int64_t pixel, int64_t row, int64_t first, int64_t last, int64_t begin, int64_t count,
              const float* dpooled, const uint8_t* winners) const;

 private:
  int64_t masks() const { return (channels + 15) / 16 * bits; }  // of a cell
};

}  // namespace millpond::backend::cpu
