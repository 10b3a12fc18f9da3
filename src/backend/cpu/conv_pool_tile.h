// Between a tile of a convolution's output and its pooled values, for pools of any size: bias, relu, the largest and
// its place; and back, the gradient spread over a row of zeros.
#pragma once
#include <cstdint>

#include "backend/cpu/isa.h"

namespace millpond::backend::cpu {

/// A row of cells and a panel of channels that begins at a multiple of 16.
struct PoolTile {
  int64_t pool_h, pool_w;
  int bits;  // masks for each 16 channels
  int64_t cells, channels;
  int64_t pixel, row;    // floats between pixels and rows of the tile
  int64_t pooled_cell;   // floats between cells
  int64_t winners_cell;  // masks between cells
};

struct PoolTileTable {
  void (*pool)(const PoolTile& t, const float* tile, const float* bias, float* pooled, uint16_t* winners) noexcept;
  /// Row `row` of the windows alone.
  void (*spread)(const PoolTile& t, float* tile, int64_t row, const float* dpooled, const uint16_t* winners) noexcept;
  /// sums[c] += the sum over r < count of rows[r * stride + c], in order.
  void (*add_rows)(float* sums, const float* rows, int64_t stride, int64_t count, int64_t channels) noexcept;
};
MP_ISA_TABLE(PoolTileTable, pool_tile_table)

}  // namespace millpond::backend::cpu
