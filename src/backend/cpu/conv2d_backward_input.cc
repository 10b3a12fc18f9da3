#include "ops/conv2d_backward_input.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/blocks.h"
#include "backend/cpu/conv_grid.h"
#include "backend/cpu/conv_input_gradient.h"
#include "backend/cpu/slow.h"
#include "backend/cpu/winograd_conv.h"

namespace millpond::backend::cpu {
namespace {

/// dx pixels with the same residues of row and column by the strides need the same taps of the filter: each pair of
/// residues is a convolution of dy with step 1. Pixels that no tap reaches (a stride larger than the kernel) are
/// cleared.
class ConvolutionBackwardInput final : public Kernel {
 public:
  ConvolutionBackwardInput(const InputGradient& c, std::optional<PoolRows> pool, int threads)
      : pool_(pool), threads_(threads) {
    const Shape& x = c.x;
    const int64_t pixel = c.filter[3];
    source_ = {nullptr, c.height * c.width * pixel, c.width * pixel, pixel};
    for (int64_t i = 0; i < std::min(c.window.stride_h, x[1]); ++i) {
      bool empty = true;
      const size_t first = parts_.size();
      for (int64_t j = 0; j < std::min(c.window.stride_w, x[2]); ++j) {
        Part part{ConvGrid::backward(c.window, x, c.filter, c.groups, c.height, c.width, i, j),
                  {},
                  {},
                  (i * x[2] + j) * x[3],
                  0};
        part.out = {nullptr, x[1] * x[2] * x[3], c.window.stride_h * x[2] * x[3], c.window.stride_w * x[3]};
        if (part.grid.taps.empty()) part.clear = x[3];
        empty = empty && part.clear;
        parts_.push_back(std::move(part));
      }
      if (empty) {  // whole rows
        parts_.resize(first + 1);
        parts_[first].grid.out_width = 1, parts_[first].clear = x[2] * x[3];
      }
    }
    int64_t most_rows = 0;
    for (Part& part : parts_) {
      part.cut = ConvCut(part.grid);
      if (part.clear)
        part.cut.panel_blocks = 1, part.cut.pixel_blocks = Runs(part.grid.pixels(), double(part.clear) * 0.1).blocks;
      blocks_ += int(part.cut.blocks());
      tile_ = std::max(tile_, aligned(part.grid.scratch().value));
      for (int64_t pb = 0; pool_ && pb < part.cut.pixel_blocks; ++pb) {
        const Rows rows = source_rows(part, pb);
        most_rows = std::max(most_rows, rows.end - rows.begin);
      }
    }
    own_ = tile_ + aligned(most_rows * source_.row * 4);
  }
  std::span<const int> phases() const override { return {&blocks_, 1}; }
  Bytes workspace() const override { return Bytes{own_ * threads_}; }
  void run(const Arguments& a, int, int block, int member) const noexcept override {
    const Part* part = parts_.data();
    for (; block >= part->cut.blocks(); ++part) block -= int(part->cut.blocks());
    const ConvGrid& grid = part->grid;
    const int64_t pb = block / part->cut.panel_blocks, cb = block % part->cut.panel_blocks,
                  panels = int64_t(grid.panels().size());
    const auto [from, to] = part->pixels(pb);
    Pixels<float> out = part->out;
    out.data = a.output<float>(0) + part->offset;
    if (part->clear) {
      for (int64_t p = from; p < to; ++p) {
        const int64_t row = p / grid.out_width;
        std::memset(out.at(row / grid.out_height, row % grid.out_height, p % grid.out_width), 0,
                    size_t(part->clear) * 4);
      }
      return;
    }
    Pixels<const float> source = source_;
    std::byte* own = a.scratch + own_ * member;
    source.data = a.input<float>(0);
    if (pool_) {
      float* tile = reinterpret_cast<float*>(own + tile_);
      const Rows rows = source_rows(*part, pb);
      for (int64_t r = rows.begin; r < rows.end; ++r)
        pool_->spread(tile + (r - rows.begin) * source.row, source.pixel, r, 0, pool_->cols, 0, pool_->channels,
                      a.input<float>(0), a.input<uint8_t>(2));
      source.data = tile - rows.begin * source.row;
    }
    for (int64_t k = panels * cb / part->cut.panel_blocks; k < panels * (cb + 1) / part->cut.panel_blocks; ++k) {
      const Panel& panel = grid.panels()[size_t(k)];
      out.data = a.output<float>(0) + part->offset + panel.group * grid.channels + panel.begin;
      grid.convolve(panel, source, a.input<float>(1), out, from, to, own);
    }
  }

 private:
  struct Rows {
    int64_t begin, end;
  };
  struct Part {
    ConvGrid grid;
    Pixels<float> out;
    ConvCut cut;
    int64_t offset, clear;  // clear: floats to be cleared at each pixel, where there are no taps
    Rows pixels(int64_t block) const {
      return {grid.pixels() * block / cut.pixel_blocks, grid.pixels() * (block + 1) / cut.pixel_blocks};
    }
  };
  /// Rows of dy, counted over all images, that a block of pixels reads.
  static Rows source_rows(const Part& part, int64_t block) {
    const ConvGrid& g = part.grid;
    const Rows pixels = part.pixels(block);
    if (pixels.begin == pixels.end || g.taps.empty()) return {0, 0};
    const auto [low, high] =
        std::minmax_element(g.taps.begin(), g.taps.end(), [](const Tap& s, const Tap& t) { return s.row < t.row; });
    auto clamped = [&](int64_t row, int64_t tap) {
      return row / g.out_height * g.height + std::clamp<int64_t>(row % g.out_height + tap, 0, g.height);
    };
    return {clamped(pixels.begin / g.out_width, low->row), clamped((pixels.end - 1) / g.out_width, high->row + 1)};
  }

  std::vector<Part> parts_;
  Pixels<const float> source_;
  std::optional<PoolRows> pool_;
  int64_t tile_ = 0, own_ = 0;  // tile: where rows of dy are spread
  int blocks_ = 0;
  int threads_;
};

}  // namespace

std::unique_ptr<Kernel> conv_input_gradient(const InputGradient& c, std::optional<PoolRows> pool, int threads) {
  const WinogradGeometry g{c.x[0], c.height, c.width,          c.filter[3],      c.x[1],
                           c.x[2], c.x[3],   2 - c.window.top, 2 - c.window.left};
  if (winograd_pays(c.window, c.groups, g)) return winograd_convolution(g, true, nullptr, pool, threads);
  return std::make_unique<ConvolutionBackwardInput>(c, pool, threads);
}

std::unique_ptr<Kernel> conv2d_backward_input(const ops::Conv2DBackwardInput& op, const Request& request) {
  if (!all_float(request.inputs) || !all_float(request.outputs)) return slow(op, request);
  const Shape& dy = request.inputs[0].shape;
  return conv_input_gradient({op.window, op.groups, op.input, request.inputs[1].shape, dy[1], dy[2]}, {},
                             request.threads);
}

}  // namespace millpond::backend::cpu
