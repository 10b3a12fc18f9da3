#include "ops/conv2d_backward_filter.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/blocks.h"
#include "backend/cpu/conv_grid.h"
#include "backend/cpu/slow.h"
#include "backend/cpu/winograd_conv.h"

namespace millpond::backend::cpu {
namespace {

constexpr int64_t kSplitPixels = 256;  // fewer are not worth a partial sum

class ConvolutionBackwardFilter final : public Kernel {
 public:
  ConvolutionBackwardFilter(const ops::Conv2DBackwardFilter& op, const Request& request)
      : size_(op.filter.size()), threads_(request.threads) {
    const Shape& x = request.inputs[0].shape;
    const Shape& dy = request.inputs[1].shape;
    grid_ = ConvGrid::forward(op.window, x, op.filter, op.groups, dy[1], dy[2]);
    source_ = {nullptr, x[1] * x[2] * x[3], x[2] * x[3], x[3]};
    channels_ = dy[3];
    cut_ = FilterCut(grid_, grid_.pixels() / kSplitPixels);
    phases_[0] = int(cut_.blocks());
    sum_ = Runs(size_, double(cut_.splits) * 0.2, 16);
    phases_[1] = sum_.blocks;
    partial_ = aligned(size_ * 4);
    own_ = aligned(grid_.filter_scratch().value);
  }
  std::span<const int> phases() const override { return {phases_, size_t(cut_.splits > 1 ? 2 : 1)}; }
  Bytes workspace() const override { return Bytes{own_ * threads_ + (cut_.splits > 1 ? partial_ * cut_.splits : 0)}; }
  void run(const Arguments& a, int phase, int block, int member) const noexcept override {
    std::byte* const partials = a.scratch + own_ * threads_;
    if (phase == 1) {
      const int64_t from = sum_.begin(block);
      return conv_tiles().add_up(a.output<float>(0) + from, reinterpret_cast<const float*>(partials) + from,
                                 sum_.end(block) - from, partial_ / 4, cut_.splits);
    }
    const int64_t pixels = grid_.pixels(), panels = int64_t(grid_.panels().size()), split = cut_.split(block),
                  part = cut_.panel_block(block);
    const int64_t from = pixels * split / cut_.splits, to = pixels * (split + 1) / cut_.splits;
    float* out = cut_.splits > 1 ? reinterpret_cast<float*>(partials + partial_ * split) : a.output<float>(0);
    if (pixels == 0) {
      if (block == 0) std::memset(out, 0, size_t(size_) * 4);
      return;
    }
    Pixels<const float> source = source_;
    source.data = a.input<float>(0);
    grid_.filter_gradient(panels * part / cut_.panel_blocks, panels * (part + 1) / cut_.panel_blocks,
                          cut_.row_block(block), cut_.row_blocks, source, a.input<float>(1) + from * channels_,
                          channels_, out, false, from, to, a.scratch + own_ * member);
  }

 private:
  ConvGrid grid_;
  Pixels<const float> source_;
  int64_t size_, channels_ = 0;
  FilterCut cut_;
  Runs sum_;
  int phases_[2] = {1, 1};
  int64_t partial_ = 0, own_ = 0;
  int threads_;
};

}  // namespace

std::unique_ptr<Kernel> conv2d_backward_filter(const ops::Conv2DBackwardFilter& op, const Request& request) {
  if (!all_float(request.inputs) || !all_float(request.outputs)) return slow(op, request);
  const Shape& x = request.inputs[0].shape;
  const Shape& dy = request.inputs[1].shape;
  const WinogradGeometry g{x[0], x[1], x[2], x[3], dy[1], dy[2], dy[3], op.window.top, op.window.left};
  if (winograd_gradient_pays(op.window, op.groups, g)) return winograd_filter_gradient(g, {}, request.threads);
  return std::make_unique<ConvolutionBackwardFilter>(op, request);
}

}  // namespace millpond::backend::cpu
