// Convolution 3 x 3, bias, relu and 2 x 2 max-pool in one pass by Winograd F(2 x 2, 3 x 3): its output tile is exactly
// one pooling window. 16 multiply-adds an input channel for the four places, against 36, and the convolution's output
// never leaves the registers. For few input channels (1 to 16) on AVX-512; the table of AVX2 is empty. Memory: the
// transformed filter (16 floats for each pair of channels), once; 32 KiB of lines a thread, and four rows of the image
// where it is padded.
#pragma once
#include <cstdint>

#include "backend/cpu/isa.h"

namespace millpond::backend::cpu {

struct WinogradShape {
  static constexpr int64_t kMaxChannels = 16;
  static constexpr int64_t kLine = 512;        // floats of a line; eight lines
  static constexpr int64_t kWork = 8 * kLine;  // floats of `lines`

  int64_t height = 0, width = 0, cin = 0, cout = 0;
  int64_t rows = 0, cols = 0;  // cells
  int64_t top = 0, left = 0;
  int64_t row_floats = 0;  // of a copied row: (left + width + right) * cin; 0 when the image is read where it lies
  bool stream = false;     // pooled values past the cache
  int64_t vectors() const { return (cout + 15) / 16; }
  int64_t filter_floats() const { return 16 * cin * 16 * vectors(); }
};

struct WinogradTable {
  /// U = G f G^T for every pair of channels, [pair of vectors][place][cin][32 or 16].
  void (*transform)(const WinogradShape& s, const float* filter, float* u) noexcept;
  /// Rows [first, last) of cells of one image. `lines`: kWork floats; `ring`: four copied rows.
  void (*pool)(const WinogradShape& s, const float* image, const float* u, const float* bias, float* pooled,
               uint16_t* winners, int64_t first, int64_t last, float* lines, float* ring) noexcept;
};
MP_ISA_TABLE(WinogradTable, winograd_table)

}  // namespace millpond::backend::cpu
