#include "ops/conv2d_backward_input.h"

#include <algorithm>

#include "backend/cpu/conv_grid.h"
#include "backend/cpu/slow.h"

namespace millpond::backend::cpu {
namespace {

/// dx pixels with the same residues of row and column by the strides need the same taps of the filter: each pair of
/// residues is a convolution of dy with step 1.
class ConvolutionBackwardInput final : public Kernel {
 public:
  ConvolutionBackwardInput(const ops::Conv2DBackwardInput& op, const Request& request) : threads_(request.threads) {
    const Shape& dy = request.inputs[0].shape;
    const Shape& x = op.input;
    source_ = {nullptr, dy[1] * dy[2] * dy[3], dy[2] * dy[3], dy[3]};
    for (int64_t i = 0; i < std::min(op.window.stride_h, x[1]); ++i)
      for (int64_t j = 0; j < std::min(op.window.stride_w, x[2]); ++j) {
        Part part{ConvGrid::backward(op.window, x, request.inputs[1].shape, op.groups, dy[1], dy[2], i, j), {}, {}, 0};
        part.out = {nullptr, x[1] * x[2] * x[3], op.window.stride_h * x[2] * x[3], op.window.stride_w * x[3]};
        part.offset = (i * x[2] + j) * x[3];
        part.cut = ConvCut(part.grid);
        blocks_ += int(part.cut.blocks());
        scratch_ = std::max(scratch_, round_up(part.grid.scratch(), 64_B));
        parts_.push_back(std::move(part));
      }
  }
  std::span<const int> phases() const override { return {&blocks_, 1}; }
  Bytes workspace() const override { return scratch_ * threads_; }
  void run(const Arguments& a, int, int block, int member) const noexcept override {
    const Part* part = parts_.data();
    for (; block >= part->cut.blocks(); ++part) block -= int(part->cut.blocks());
    const ConvGrid& grid = part->grid;
    const int64_t pb = block / part->cut.panel_blocks, cb = block % part->cut.panel_blocks, pixels = grid.pixels(), panels = int64_t(grid.panels().size());
    Pixels<const float> source = source_;
    source.data = a.input<float>(0);
    Pixels<float> out = part->out;
    for (int64_t k = panels * cb / part->cut.panel_blocks; k < panels * (cb + 1) / part->cut.panel_blocks; ++k) {
      const Panel& panel = grid.panels()[size_t(k)];
      out.data = a.output<float>(0) + part->offset + panel.group * grid.channels + panel.begin;
      grid.convolve(panel, source, a.input<float>(1), out, pixels * pb / part->cut.pixel_blocks, pixels * (pb + 1) / part->cut.pixel_blocks,
                    a.scratch + scratch_.value * member);
    }
  }

 private:
  struct Part {
    ConvGrid grid;
    Pixels<float> out;
    ConvCut cut;
    int64_t offset;
  };
  std::vector<Part> parts_;
  Pixels<const float> source_;
  Bytes scratch_;
  int blocks_ = 0;
  int threads_;
};

}  // namespace

std::unique_ptr<Kernel> conv2d_backward_input(const ops::Conv2DBackwardInput& op, const Request& request) {
  if (!all_float(request.inputs) || !all_float(request.outputs)) return slow(op, request);
  return std::make_unique<ConvolutionBackwardInput>(op, request);
}

}  // namespace millpond::backend::cpu
