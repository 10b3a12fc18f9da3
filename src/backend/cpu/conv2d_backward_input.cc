#include "ops/conv2d_backward_input.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/blocks.h"
#include "backend/cpu/conv_grid.h"
#include "backend/cpu/slow.h"
#include "backend/cpu/winograd_conv.h"

namespace millpond::backend::cpu {
namespace {

/// dx pixels with the same residues of row and column by the strides need the same taps of the filter: each pair of
/// residues is a convolution of dy with step 1. Pixels that no tap reaches (a stride larger than the kernel) are
/// cleared.
class ConvolutionBackwardInput final : public Kernel {
 public:
  ConvolutionBackwardInput(const ops::Conv2DBackwardInput& op, const Request& request) : threads_(request.threads) {
    const Shape& dy = request.inputs[0].shape;
    const Shape& x = op.input;
    source_ = {nullptr, dy[1] * dy[2] * dy[3], dy[2] * dy[3], dy[3]};
    for (int64_t i = 0; i < std::min(op.window.stride_h, x[1]); ++i) {
      bool empty = true;
      const size_t first = parts_.size();
      for (int64_t j = 0; j < std::min(op.window.stride_w, x[2]); ++j) {
        Part part{ConvGrid::backward(op.window, x, request.inputs[1].shape, op.groups, dy[1], dy[2], i, j),
                  {},
                  {},
                  (i * x[2] + j) * x[3],
                  0};
        part.out = {nullptr, x[1] * x[2] * x[3], op.window.stride_h * x[2] * x[3], op.window.stride_w * x[3]};
        if (part.grid.taps.empty()) part.clear = x[3];
        empty = empty && part.clear;
        parts_.push_back(std::move(part));
      }
      if (empty) {  // whole rows
        parts_.resize(first + 1);
        parts_[first].grid.out_width = 1, parts_[first].clear = x[2] * x[3];
      }
    }
    for (Part& part : parts_) {
      part.cut = ConvCut(part.grid);
      if (part.clear)
        part.cut.panel_blocks = 1, part.cut.pixel_blocks = Runs(part.grid.pixels(), double(part.clear) * 0.1).blocks;
      blocks_ += int(part.cut.blocks());
      own_ = std::max(own_, aligned(part.grid.scratch().value));
    }
  }
  std::span<const int> phases() const override { return {&blocks_, 1}; }
  Bytes workspace() const override { return Bytes{own_ * threads_}; }
  void run(const Arguments& a, int, int block, int member) const noexcept override {
    const Part* part = parts_.data();
    for (; block >= part->cut.blocks(); ++part) block -= int(part->cut.blocks());
    const ConvGrid& grid = part->grid;
    const int64_t pb = block / part->cut.panel_blocks, cb = block % part->cut.panel_blocks,
                  panels = int64_t(grid.panels().size());
    const int64_t from = grid.pixels() * pb / part->cut.pixel_blocks,
                  to = grid.pixels() * (pb + 1) / part->cut.pixel_blocks;
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
    source.data = a.input<float>(0);
    for (int64_t k = panels * cb / part->cut.panel_blocks; k < panels * (cb + 1) / part->cut.panel_blocks; ++k) {
      const Panel& panel = grid.panels()[size_t(k)];
      out.data = a.output<float>(0) + part->offset + panel.group * grid.channels + panel.begin;
      grid.convolve(panel, source, a.input<float>(1), out, from, to, a.scratch + own_ * member);
    }
  }

 private:
  struct Part {
    ConvGrid grid;
    Pixels<float> out;
    ConvCut cut;
    int64_t offset, clear;  // clear: floats to be cleared at each pixel, where there are no taps
  };
  std::vector<Part> parts_;
  Pixels<const float> source_;
  int64_t own_ = 0;
  int blocks_ = 0;
  int threads_;
};

}  // namespace

std::unique_ptr<Kernel> conv2d_backward_input(const ops::Conv2DBackwardInput& op, const Request& request) {
  if (!all_float(request.inputs) || !all_float(request.outputs)) return slow(op, request);
  const Shape& dy = request.inputs[0].shape;
  const Shape& x = op.input;
  const WinogradGeometry g{x[0], dy[1], dy[2], dy[3], x[1], x[2], x[3], 2 - op.window.top, 2 - op.window.left};
  if (winograd_pays(op.window, op.groups, g)) return winograd_convolution(g, true, nullptr, request.threads);
  return std::make_unique<ConvolutionBackwardInput>(op, request);
}

}  // namespace millpond::backend::cpu
