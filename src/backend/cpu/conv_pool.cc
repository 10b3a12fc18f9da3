#include "ops/conv_pool.h"

#include <algorithm>

#include "backend/cpu/blocks.h"
#include "backend/cpu/conv_grid.h"
#include "backend/cpu/pool_rows.h"
#include "backend/cpu/slow.h"
#include "backend/cpu/winograd_conv.h"
#include "backend/cpu/winograd_pool.h"

namespace millpond::backend::cpu {
namespace {

constexpr int64_t kTilePixels = 448;  // 112 KiB with 64 channels; fewer would not pay for packing the filter
constexpr int64_t kLeastBlocks = 16;  // wanted at least
constexpr Bytes kStream = 32_MiB;     // pooled values larger than this leave the cache before anybody reads them

class WinogradPool final : public Kernel {
 public:
  WinogradPool(const ops::ConvPool& op, const Request& request) : threads_(request.threads) {
    const Shape& x = request.inputs[0].shape;
    const Shape& pooled = request.outputs[0].shape;
    images_ = x[0];
    s_.height = x[1], s_.width = x[2], s_.cin = x[3], s_.cout = pooled[3];
    s_.rows = pooled[1], s_.cols = pooled[2], s_.top = op.window.top, s_.left = op.window.left;
    const int64_t right = std::max<int64_t>(0, 2 * s_.cols + 2 - s_.left - s_.width),
                  below = 2 * s_.rows + 2 - s_.top - s_.height;
    if (s_.top || s_.left || right || below > 0) s_.row_floats = (s_.left + s_.width + right) * s_.cin;
    s_.stream = request.outputs[0].bytes() > kStream && s_.cout % 16 == 0;
    // About 70 cycles for a cell and vector of channels with 3 channels of input.
    const double row_ns = double(s_.cols * s_.vectors()) * (20 + 16 * double(s_.cin)) / 3.7;
    runs_ = Runs(s_.rows, row_ns, 1, std::max<int>(1, int(256 / std::max<int64_t>(1, images_))));
    phases_[1] = int(images_) * runs_.blocks;
    filter_bytes_ = aligned(s_.filter_floats() * 4);
    own_bytes_ = aligned((WinogradShape::kWork + 4 * s_.row_floats) * 4);
  }
  std::span<const int> phases() const override { return phases_; }
  Bytes workspace() const override { return Bytes{filter_bytes_ + own_bytes_ * threads_}; }
  void run(const Arguments& a, int phase, int block, int member) const noexcept override {
    float* u = reinterpret_cast<float*>(a.scratch);
    if (phase == 0) return winograd_table().transform(s_, a.input<float>(1), u);
    float* lines = reinterpret_cast<float*>(a.scratch + filter_bytes_ + own_bytes_ * member);
    const int64_t n = block / runs_.blocks, cells = n * s_.rows * s_.cols;
    WinogradShape s = s_;
    s.stream = s_.stream && reinterpret_cast<uintptr_t>(a.output<float>(0)) % 64 == 0;
    winograd_table().pool(s, a.input<float>(0) + n * s_.height * s_.width * s_.cin, u, a.input<float>(2),
                          a.output<float>(0) + cells * s_.cout,
                          reinterpret_cast<uint16_t*>(a.output<uint8_t>(1)) + cells * s_.vectors() * 2,
                          runs_.begin(block % runs_.blocks), runs_.end(block % runs_.blocks), lines,
                          lines + WinogradShape::kWork);
  }

 private:
  WinogradShape s_;
  int64_t images_ = 0;
  Runs runs_;
  int phases_[2] = {1, 1};
  int64_t filter_bytes_ = 0, own_bytes_ = 0;
  int threads_;
};

/// Any kernel, strides and pool: a few rows of the convolution's output, one panel of channels wide, live in a tile in
/// L2.
class TiledPool final : public Kernel {
 public:
  TiledPool(const ops::ConvPool& op, const Request& request)
      : pool_(op.pool, request.outputs[0].shape), threads_(request.threads) {
    const Shape& x = request.inputs[0].shape;
    cell_rows_ = x[0] * pool_.rows;
    grid_ = ConvGrid::forward(op.window, x, request.inputs[1].shape, 1, pool_.height(), pool_.width());
    source_ = {nullptr, x[1] * x[2] * x[3], x[2] * x[3], x[3]};
    row_ = pool_.pool_h * pool_.width();
    const int64_t panels = int64_t(grid_.panels().size());
    step_ = std::clamp<int64_t>(kTilePixels / std::max<int64_t>(1, row_), 1, std::max<int64_t>(1, cell_rows_));
    row_blocks_ = std::max<int64_t>(1, ceil_div(cell_rows_, step_));
    panel_blocks_ = std::clamp<int64_t>(ceil_div(kLeastBlocks, row_blocks_), 1, std::max<int64_t>(1, panels));
    blocks_ = int(row_blocks_ * panel_blocks_);
    for (const Panel& p : grid_.panels()) wide_ = std::max(wide_, round_up(p.channels, 16));
    tile_ = aligned(step_ * row_ * wide_ * 4);
    own_ = tile_ + aligned(grid_.scratch().value);
  }
  std::span<const int> phases() const override { return {&blocks_, 1}; }
  Bytes workspace() const override { return Bytes{own_ * threads_}; }
  void run(const Arguments& a, int, int block, int member) const noexcept override {
    const int64_t part = block % panel_blocks_, first = block / panel_blocks_ * step_,
                  last = std::min(first + step_, cell_rows_), panels = int64_t(grid_.panels().size());
    Pixels<const float> source = source_;
    source.data = a.input<float>(0);
    float* tile = reinterpret_cast<float*>(a.scratch + own_ * member);
    const int64_t from = first * row_;
    for (int64_t k = panels * part / panel_blocks_; k < panels * (part + 1) / panel_blocks_; ++k) {
      const Panel& panel = grid_.panels()[size_t(k)];
      grid_.convolve(panel, source, a.input<float>(1), linear(tile, from, grid_.out_height, grid_.out_width, wide_),
                     from, last * row_, a.scratch + own_ * member + tile_);
      pool_.pool(tile, wide_, first, last, panel.begin, panel.channels, a.input<float>(2), a.output<float>(0),
                 a.output<uint8_t>(1));
    }
  }

 private:
  ConvGrid grid_;
  Pixels<const float> source_;
  PoolRows pool_;
  int64_t row_ = 0;   // pixels of a row of cells
  int64_t wide_ = 0;  // floats of a pixel in the tile
  int64_t cell_rows_ = 0, step_ = 1, row_blocks_ = 1, panel_blocks_ = 1, tile_ = 0, own_ = 0;
  int blocks_ = 1;
  int threads_;
};

bool winograd_fits(const ops::ConvPool& op, const Request& request) {
  const ops::Window& w = op.window;
  return winograd_table().pool && w.height == 3 && w.width == 3 && w.stride_h == 1 && w.stride_w == 1 &&
         w.dilation_h == 1 && w.dilation_w == 1 && op.pool.height == 2 && op.pool.width == 2 &&
         request.inputs[0].shape[3] <= WinogradShape::kMaxChannels;
}

}  // namespace

std::unique_ptr<Kernel> conv_pool(const ops::ConvPool& op, const Request& request) {
  if (!all_float(request.inputs)) return slow(op, request);
  if (winograd_fits(op, request)) return std::make_unique<WinogradPool>(op, request);
  const PoolRows pool(op.pool, request.outputs[0].shape);
  const Shape& x = request.inputs[0].shape;
  const WinogradGeometry g{x[0],         x[1],          x[2],          x[3],           pool.height(),
                           pool.width(), pool.channels, op.window.top, op.window.left, winograd_unit(pool.pool_h)};
  if (winograd_pays(op.window, 1, g)) return winograd_convolution(g, false, nullptr, pool, request.threads);
  return std::make_unique<TiledPool>(op, request);
}

}  // namespace millpond::backend::cpu
