// Convolution 3 x 3 with stride 1 by Winograd's F(2 x 2, 3 x 3): 16 products for four pixels instead of 36. Chosen
// where the channels pay for the transforms and the transformed filter is small enough. Memory: the transformed filter
// (16 / 9 of the filter, 4 MiB at a time) or its gradient's partial sums (at most 8 MiB); a thread: the transformed
// input and products of a few rows of tiles (about 1 MiB).
#pragma once
#include <memory>
#include <optional>

#include "backend/cpu/expression.h"
#include "backend/cpu/pool_rows.h"
#include "backend/host/kernel.h"
#include "ops/conv2d.h"

namespace millpond::backend::cpu {

/// Convolutions of x [n, h, w, k] to [n, oh, ow, c].
struct WinogradGeometry {
  int64_t images = 0, height = 0, width = 0, depth = 0;
  int64_t out_height = 0, out_width = 0, channels = 0;
  int64_t top = 0, left = 0;
  int64_t unit = 1;  // rows of tiles that stay in one block, counted from an image's first
  int64_t tile_rows() const { return (out_height + 1) / 2; }
  int64_t tile_cols() const { return (out_width + 1) / 2; }
};

/// 3 x 3, stride 1, no dilation, one group, and worth it.
bool winograd_pays(const ops::Window& w, int64_t groups, const WinogradGeometry& g);
bool winograd_gradient_pays(const ops::Window& w, int64_t groups, const WinogradGeometry& g);  // of the filter

/// Rows of tiles of a block of pixels; an epilogue's grid has winograd_blocks(g) blocks of rows and winograd_panels(g)
/// of columns.
int winograd_blocks(const WinogradGeometry& g);
int winograd_panels(const WinogradGeometry& g);

/// Operands source, filter, those of the epilogue. `transposed`: the gradient of the input, whose source is dy; the
/// filter is as it was for the forward pass. With `pool` those of conv_pool or, transposed, conv_pool_backward_input:
/// the geometry is that of the pixels that are pooled, and a block has whole cells (`winograd_unit`).
std::unique_ptr<Kernel> winograd_convolution(const WinogradGeometry& g, bool transposed,
                                             std::unique_ptr<ExpressionKernel> epilogue, std::optional<PoolRows> pool,
                                             int threads);
/// Rows of tiles that are whole rows of cells.
inline int64_t winograd_unit(int64_t pool_height) { return pool_height % 2 ? pool_height : pool_height / 2; }

/// Operands x, dy; with `pool` those of conv_pool_backward.
std::unique_ptr<Kernel> winograd_filter_gradient(const WinogradGeometry& g, std::optional<PoolRows> pool, int threads);

}  // namespace millpond::backend::cpu
