#include "ops/conv_pool_backward.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/blocks.h"
#include "backend/cpu/conv_grid.h"
#include "backend/cpu/conv_pool_gradient.h"
#include "backend/cpu/conv_pool_tile.h"
#include "backend/cpu/conv_tile.h"
#include "backend/cpu/pool_rows.h"
#include "backend/cpu/slow.h"
#include "backend/cpu/winograd_conv.h"

namespace millpond::backend::cpu {
namespace {

constexpr int64_t kMostPartials = 64;
constexpr int64_t kGradientTilePixels = 448, kGradientTileFloats = 64 << 10;

class PermutedPoolBackward final : public Kernel {
 public:
  PermutedPoolBackward(const ops::ConvPoolBackward& op, const Request& request) : threads_(request.threads) {
    const Shape& x = request.inputs[0].shape;
    const Shape& pooled = request.inputs[2].shape;
    const ops::Window& w = op.window;
    images_ = x[0];
    s_.height = x[1], s_.width = x[2], s_.cin = x[3], s_.cout = pooled[3];
    s_.rows = pooled[1], s_.cols = pooled[2];
    s_.kernel_h = w.height, s_.kernel_w = w.width, s_.stride_h = w.stride_h, s_.dilation_h = w.dilation_h,
    s_.dilation_w = w.dilation_w;
    s_.top = w.top, s_.left = w.left;
    const int64_t right = std::max<int64_t>(0, 2 * s_.cols + (w.width - 1) * w.dilation_w - s_.left - s_.width);
    const int64_t below = (2 * s_.rows - 1) * w.stride_h + (w.height - 1) * w.dilation_h + 1 - s_.top - s_.height;
    if (s_.top || s_.left || right || below > 0) s_.row_floats = (s_.left + s_.width + right) * s_.cin;
    const double row_ns = double(s_.cols * s_.vectors() * s_.kernel_h * s_.kernel_w) * double(s_.cin) * 1.4 / 3.7;
    runs_ = Runs(s_.rows, row_ns, 1, int(std::max<int64_t>(1, kMostPartials / std::max<int64_t>(1, images_))));
    // Many small images: several to a block.
    image_blocks_ = std::min(images_, kMostPartials);
    phases_[0] = int(std::max<int64_t>(1, image_blocks_)) * runs_.blocks;
    partial_ = aligned(s_.sums() * 4);
    own_ = aligned(s_.row_floats * s_.span() * 4);
  }
  std::span<const int> phases() const override { return phases_; }
  Bytes workspace() const override { return Bytes{partial_ * phases_[0] + own_ * threads_}; }
  void run(const Arguments& a, int phase, int block, int member) const noexcept override {
    if (phase == 1) {
      const int64_t depth = s_.kernel_h * s_.kernel_w * s_.cin, wide = s_.vectors() * 16;
      const float* partials = reinterpret_cast<const float*>(a.scratch);
      for (int64_t k = 0; k <= depth; ++k)
        conv_tiles().add_up(k < depth ? a.output<float>(0) + k * s_.cout : a.output<float>(1), partials + k * wide,
                            s_.cout, partial_ / 4, phases_[0]);
      return;
    }
    float* sums = reinterpret_cast<float*>(a.scratch + partial_ * block);
    std::memset(sums, 0, size_t(partial_));
    const int64_t part = block / runs_.blocks, rows = block % runs_.blocks;
    for (int64_t n = images_ * part / std::max<int64_t>(1, image_blocks_);
         n < images_ * (part + 1) / std::max<int64_t>(1, image_blocks_); ++n) {
      const int64_t cells = n * s_.rows * s_.cols;
      pool_gradient_table().add(s_, a.input<float>(0) + n * s_.height * s_.width * s_.cin,
                                reinterpret_cast<const uint16_t*>(a.input<uint8_t>(1)) + cells * s_.vectors() * 2,
                                a.input<float>(2) + cells * s_.cout, sums, runs_.begin(int(rows)), runs_.end(int(rows)),
                                reinterpret_cast<float*>(a.scratch + partial_ * phases_[0] + own_ * member));
    }
  }

 private:
  PoolGradientShape s_;
  int64_t images_ = 0, image_blocks_ = 1;
  Runs runs_;
  int phases_[2] = {1, 1};
  int64_t partial_ = 0, own_ = 0;
  int threads_;
};

/// Any kernel, strides and pool: the gradient of a few rows of the convolution's output, zeros but for the winners, is
/// spread over a tile in L2.
class TiledPoolBackward final : public Kernel {
 public:
  TiledPoolBackward(const ops::ConvPoolBackward& op, const Request& request)
      : pool_(op.pool, request.inputs[2].shape), size_(op.filter.size()), threads_(request.threads) {
    const Shape& x = request.inputs[0].shape;
    cell_rows_ = x[0] * pool_.rows;
    grid_ = ConvGrid::forward(op.window, x, op.filter, 1, pool_.height(), pool_.width());
    source_ = {nullptr, x[1] * x[2] * x[3], x[2] * x[3], x[3]};
    row_ = pool_.pool_h * pool_.width();
    const int64_t pixels = std::min(kGradientTilePixels, kGradientTileFloats / std::max<int64_t>(1, pool_.channels));
    step_ = std::clamp<int64_t>(pixels / std::max<int64_t>(1, row_), 1, std::max<int64_t>(1, cell_rows_));
    cut_ = FilterCut(grid_, cell_rows_ / step_);
    phases_[0] = int(cut_.blocks());
    sum_ = Runs(size_, double(cut_.splits) * 0.2, 16);
    phases_[1] = sum_.blocks + 1;
    filter_bytes_ = cut_.splits > 1 ? aligned(size_ * 4) : 0;
    partial_ = filter_bytes_ + aligned(pool_.channels * 4);
    tile_ = aligned(step_ * row_ * pool_.channels * 4);
    own_ = tile_ + aligned(grid_.filter_scratch().value);
  }
  std::span<const int> phases() const override { return phases_; }
  Bytes workspace() const override { return Bytes{own_ * threads_ + partial_ * cut_.splits}; }
  void run(const Arguments& a, int phase, int block, int member) const noexcept override {
    std::byte* const partials = a.scratch + own_ * threads_;
    const bool direct = cut_.splits == 1;  // into dfilter
    if (phase == 1) {
      if (block == sum_.blocks)
        return conv_tiles().add_up(a.output<float>(1), reinterpret_cast<const float*>(partials + filter_bytes_),
                                   pool_.channels, partial_ / 4, cut_.splits);
      const int64_t from = sum_.begin(block);
      if (!direct)
        conv_tiles().add_up(a.output<float>(0) + from, reinterpret_cast<const float*>(partials) + from,
                            sum_.end(block) - from, partial_ / 4, cut_.splits);
      return;
    }
    const int64_t split = cut_.split(block), part = cut_.panel_block(block), rows = cut_.row_block(block),
                  panels = int64_t(grid_.panels().size());
    const int64_t first_panel = panels * part / cut_.panel_blocks, last_panel = panels * (part + 1) / cut_.panel_blocks;
    if (first_panel == last_panel) return;
    const int64_t begin = grid_.panels()[size_t(first_panel)].begin,
                  end = grid_.panels()[size_t(last_panel - 1)].begin + grid_.panels()[size_t(last_panel - 1)].channels;
    float* tile = reinterpret_cast<float*>(a.scratch + own_ * member);
    float* dfilter = direct ? a.output<float>(0) : reinterpret_cast<float*>(partials + partial_ * split);
    float* dbias = rows == 0 ? reinterpret_cast<float*>(partials + partial_ * split + filter_bytes_) : nullptr;
    if (dbias) std::memset(dbias + begin, 0, size_t(end - begin) * 4);
    const int64_t from_row = cell_rows_ * split / cut_.splits, to_row = cell_rows_ * (split + 1) / cut_.splits;
    if (from_row == to_row && rows == 0) clear(dfilter, begin, end);
    Pixels<const float> source = source_;
    source.data = a.input<float>(0);
    const float* dpooled = a.input<float>(2);
    const int64_t line = pool_.width() * pool_.channels;
    for (int64_t r = from_row; r < to_row; r += step_) {
      const int64_t stop = std::min(r + step_, to_row), first = r * pool_.pool_h;
      for (int64_t y = first; y < stop * pool_.pool_h; ++y)
        pool_.spread(tile + (y - first) * line + begin, pool_.channels, y, 0, pool_.cols, begin, end - begin, dpooled,
                     a.input<uint8_t>(1));
      if (dbias)
        pool_tile_table().add_rows(dbias + begin, dpooled + r * pool_.cols * pool_.channels + begin, pool_.channels,
                                   (stop - r) * pool_.cols, end - begin);
      grid_.filter_gradient(first_panel, last_panel, rows, cut_.row_blocks, source, tile, pool_.channels, dfilter,
                            r > from_row, r * row_, stop * row_, a.scratch + own_ * member + tile_);
    }
  }

 private:
  void clear(float* dfilter, int64_t begin, int64_t end) const {
    for (int64_t k = 0; k < grid_.depth(); ++k)
      std::memset(dfilter + k * pool_.channels + begin, 0, size_t(end - begin) * 4);
  }
  ConvGrid grid_;
  Pixels<const float> source_;
  PoolRows pool_;
  int64_t size_, cell_rows_ = 0, step_ = 1;
  int64_t row_ = 0;  // pixels of a row of cells
  FilterCut cut_;
  Runs sum_;
  int phases_[2] = {1, 1};
  int64_t filter_bytes_ = 0, partial_ = 0, tile_ = 0, own_ = 0;
  int threads_;
};

bool permutes(const ops::ConvPoolBackward& op, const Request& request) {
  return pool_gradient_table().add && op.window.stride_w == 1 && op.pool.height == 2 && op.pool.width == 2 &&
         request.inputs[0].shape[3] <= PoolGradientShape::kMaxChannels;
}

}  // namespace

std::unique_ptr<Kernel> conv_pool_backward(const ops::ConvPoolBackward& op, const Request& request) {
  if (!all_float(request.outputs)) return slow(op, request);
  if (permutes(op, request)) return std::make_unique<PermutedPoolBackward>(op, request);
  const PoolRows pool(op.pool, request.inputs[2].shape);
  const Shape& x = request.inputs[0].shape;
  const WinogradGeometry g{x[0],         x[1],          x[2],          x[3],          pool.height(),
                           pool.width(), pool.channels, op.window.top, op.window.left};
  if (winograd_gradient_pays(op.window, 1, g)) return winograd_filter_gradient(g, pool, request.threads);
  return std::make_unique<TiledPoolBackward>(op, request);
}

}  // namespace millpond::backend::cpu
