// The filter's and bias's gradient of a convolution followed by a 2 x 2 max-pool, straight from the gradient of the
// pooled values. Each lane (channel) needs the input of its own winner: `vpermps` picks it out of one register that
// holds the candidates of all four places (2 pixels of each of 2 rows), so a tap costs one permute and one multiply-add
// a cell and vector, a quarter of what the dense gradient of the convolution's output would cost. For 1 to 4 input
// channels and strides of 1 along a row, on AVX-512; the table of AVX2 is empty. Memory: sums [taps * channels +
// 1][channels of output], the last row the bias; the rows of the image under a cell where the image is padded.
#pragma once
#include <cstdint>

#include "backend/cpu/isa.h"

namespace millpond::backend::cpu {

struct PoolGradientShape {
  static constexpr int64_t kMaxChannels = 4;

  int64_t height = 0, width = 0, cin = 0, cout = 0;
  int64_t rows = 0, cols = 0;  // cells
  int64_t kernel_h = 0, kernel_w = 0, stride_h = 1, dilation_h = 1, dilation_w = 1;
  int64_t top = 0, left = 0;
  int64_t row_floats = 0;  // of a copied row, (left + width + right) * cin; 0 when the image is read where it lies
  int64_t vectors() const { return (cout + 15) / 16; }
  int64_t sums() const { return (kernel_h * kernel_w * cin + 1) * vectors() * 16; }
  /// Rows of the image that one row of cells reads.
  int64_t span() const { return (kernel_h - 1) * dilation_h + stride_h + 1; }
};

struct PoolGradientTable {
  /// Adds rows [first, last) of cells of one image to `sums`. `ring`: span() copied rows.
  void (*add)(const PoolGradientShape& s, const float* image, const uint16_t* winners, const float* dpooled,
              float* sums, int64_t first, int64_t last, float* ring) noexcept;
};
MP_ISA_TABLE(PoolGradientTable, pool_gradient_table)

}  // namespace millpond::backend::cpu
