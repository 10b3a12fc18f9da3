// The innermost loops of every convolution, one set for each instruction set: a few output pixels times a panel of
// output channels stay in registers while the sum runs. They reach the rate of a matrix product for any shape, because
// each pixel brings pointers to its own inputs: strides, borders and rows that end need no copy, only a pointer to
// zeros.
//
//   PixelTile   out[p][0..panel) (+)= sum over runs r and k < length of rows[r][p][k] * filters[r][k][0..panel)
//               (each: a channel of output has one of input,
//               out[p][c] (+)= sum over r of rows[r][p][c] * filters[r][c] for c < length)
//   FilterTile  out[k][0..panel) (+)= sum over pixels p of x[p][k] * dy[p][0..panel) for k < rows
//               (turned: out[k][0..panel) (+)= sum over pixels p of x[p][0..panel) * dy[p][k])
//
// A panel is up to `vectors` vectors wide; `tail` channels of its last vector exist. Filters are packed, [k][panel],
// padded with zeros to whole vectors, 64-byte aligned.
#pragma once
#include <cstdint>

#include "backend/cpu/isa.h"

namespace millpond::backend::cpu {

struct PixelTile {
  const float* const* rows;  // [runs][pixels]
  int64_t runs, length;
  const float* const* filters;  // [runs]
  float* const* out;            // [pixels]
  int64_t ahead;                // floats from the first pixel's run to that of the next tile: its source is prefetched
  int tail;
  bool add;  // to what is there
};

struct FilterTile {
  const float* const* x;  // [pixels + ConvTiles::kAhead]: those behind the end are only prefetched
  int64_t offset;         // added to every pointer of x
  const float* dy;
  int64_t dy_stride;
  int64_t pixels;
  float* out;
  int64_t out_stride;
  int tail;
  bool add;
};

/// A piece of a filter's gradient: a few rows of one tap.
struct FilterPiece {
  int32_t tap, rows;
  int64_t begin;
};

struct ConvTiles {
  static constexpr int kVectors = 4, kPixels = 8, kRows = 8, kAhead = 8;
  using Pixels = void (*)(const PixelTile&) noexcept;
  using Filter = void (*)(const FilterTile&) noexcept;

  int lanes;                     // floats in a vector
  int vectors;                   // most vectors in a panel
  int max_pixels[kVectors + 1];  // most pixels beside that many vectors
  int max_rows[kVectors + 1];
  Pixels pixels[kVectors + 1][kPixels + 1];  // [vectors][pixels]
  Filter filter[kVectors + 1][kRows + 1];    // [vectors][rows]
  Filter turned[kVectors + 1][kRows + 1];

  // Depthwise.
  Pixels each[kPixels + 1];  // [pixels]; filters not packed
  /// out[r][c] (+)= sum over p of x[r * stride + p][c] * dy[p][c] for r < runs, c < channels; dy and out without gaps.
  void (*each_filter)(const float* const* x, int64_t stride, int64_t runs, int64_t pixels, const float* dy,
                      int64_t channels, float* out, bool add) noexcept;

  /// to[k][0..vectors * lanes) = from[k * stride + (0..channels)], zeros behind.
  void (*pack)(float* to, const float* from, int64_t rows, int64_t stride, int vectors, int64_t channels) noexcept;
  /// to[k][c] = from[c * stride + k] for c < channels, zeros behind.
  void (*pack_transposed)(float* to, const float* from, int64_t rows, int64_t stride, int vectors,
                          int64_t channels) noexcept;
  /// to[k * to_stride + c] (+)= from[c * from_stride + k] for k < rows, c < channels.
  void (*unturn)(float* to, int64_t to_stride, const float* from, int64_t from_stride, int64_t rows, int64_t channels,
                 bool add) noexcept;
  /// to[i] = sum over s < count of from[s * stride + i], in order.
  void (*add_up)(float* to, const float* from, int64_t size, int64_t stride, int64_t count) noexcept;
};
MP_ISA_TABLE(ConvTiles, conv_tiles)

}  // namespace millpond::backend::cpu
