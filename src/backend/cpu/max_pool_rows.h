// Pooling of images NHWC row by row, vectorised over channels: the loops of max_pool2d, average_pool2d and their
// gradients.
#pragma once
#include <cstdint>

#include "backend/cpu/isa.h"

namespace millpond::backend::cpu {

struct PoolShape {
  int64_t images = 0, height = 0, width = 0, channels = 0, out_height = 0, out_width = 0;
  int64_t size_h = 1, size_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1, top = 0, left = 0;
};

/// Pointers are to the image's first element; rows of outputs are [first, last). Gradients are added to the rows
/// [first, last) of dx, which are cleared first.
struct PoolRowsTable {
  void (*max)(const PoolShape& s, const float* x, float* y, uint8_t* winners, int64_t first, int64_t last) noexcept;
  void (*max_gradient)(const PoolShape& s, const uint8_t* winners, const float* dy, float* dx, int64_t first,
                       int64_t last) noexcept;
  void (*average)(const PoolShape& s, const float* x, float* y, int64_t first, int64_t last) noexcept;
  void (*average_gradient)(const PoolShape& s, const float* dy, float* dx, int64_t first, int64_t last) noexcept;
};
MP_ISA_TABLE(PoolRowsTable, pool_rows_table)

}  // namespace millpond::backend::cpu
