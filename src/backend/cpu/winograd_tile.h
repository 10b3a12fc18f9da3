// The four linear maps of Winograd's F(2 x 2, 3 x 3), vectorised over channels. A tile is 2 x 2 pixels of output and
// the 4 x 4 of input under it; in between, place p of 16 is a matrix product over channels of its own:
//   V = B^T d B   of the input          U = G f G^T   of the filter
//   y = A^T (sum over channels of U * V) A
// and for the filter's gradient  df = G^T (sum over tiles of V * W) G  with  W = A dy A^T.
#pragma once
#include <cstdint>

#include "backend/cpu/isa.h"

namespace millpond::backend::cpu {

struct WinogradTiles {
  /// V of one tile: 16 pixels in rows of four; place p goes to v + p * plane.
  void (*input)(const float* const* pixels, int64_t channels, float* v, int64_t plane) noexcept;
  /// The same for the four places of row i alone; place (i, j) goes to v + j * plane.
  void (*input_row)(int i, const float* const* pixels, int64_t channels, float* v, int64_t plane) noexcept;
  /// U of `rows` input channels: tap t of row k and channel c is at taps[t][k * stride + c]; place p goes to u + p *
  /// plane, [k][vectors * lanes], zeros behind `channels`.
  void (*filter)(const float* const* taps, int64_t rows, int64_t stride, int vectors, int64_t channels, float* u,
                 int64_t plane) noexcept;
  /// y of one tile: place p at m + p * plane; pixels that do not exist are null.
  void (*output)(const float* m, int64_t plane, int64_t channels, float* const* pixels) noexcept;
  /// W of one tile, row i of places: dy of 4 pixels; place (i, j) goes to w + j * plane, [vectors * lanes], zeros
  /// behind `channels`.
  void (*gradient_row)(int i, const float* const* pixels, int vectors, int64_t channels, float* w,
                       int64_t plane) noexcept;
  /// df of one row of channels: place p of partial sum s at m + s * stride + p * plane; tap t to taps[t].
  void (*filter_gradient)(const float* m, int64_t plane, int64_t stride, int64_t partials, int64_t channels,
                          float* const* taps) noexcept;
};
MP_ISA_TABLE(WinogradTiles, winograd_tiles)

}  // namespace millpond::backend::cpu
