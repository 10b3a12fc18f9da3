// Between a tile of a convolution's output and its pooled values, for pools of any size: bias, relu, the largest and
// its place; and back, the gradient spread over a tile of zeros.
#pragma once
#include <cstdint>

#include "backend/cpu/isa.h"

namespace millpond::backend::cpu {

/// A row of cells and a panel of channels that begins at a multiple of 16.
struct PoolTile {
  float* tile;         // first cell's first place
  int64_t pixel, row;  // floats between pixels and rows of the tile
  int64_t pool_h, pool_w;
  int bits;  // masks for each 16 channels
  int64_t cells, channels;
  float* pooled;         // or its gradient
  int64_t pooled_cell;   // floats between cells
  uint16_t* winners;     // of the panel's first channels
  int64_t winners_cell;  // masks between cells
  const float* bias;     // pool
  float* dbias;          // spread: summed up here, 16 floats for each 16 channels; may be null
};

struct PoolTileTable {
  void (*pool)(const PoolTile& t) noexcept;
  void (*spread)(const PoolTile& t) noexcept;
};
MP_ISA_TABLE(PoolTileTable, pool_tile_table)

}  // namespace millpond::backend::cpu
