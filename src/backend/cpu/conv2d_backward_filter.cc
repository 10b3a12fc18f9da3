#include "ops/conv2d_backward_filter.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/conv_grid.h"
#include "backend/cpu/slow.h"

namespace millpond::backend::cpu {
namespace {

constexpr int64_t kBlocks = 16;              // wanted, whatever the threads: the same bits with any number of them
constexpr int64_t kSplits = 8;               // of the pixels
constexpr Bytes kPartials = 4_MiB;           // for their partial sums
constexpr int64_t kSplitPixels = 256;
constexpr int64_t kRowsInBlock = 96;         // of the filter: packing dy for a block costs 12 cycles a pixel, a row 4

/// A small filter is cut by pixels: a block reads its part of x once, and partial sums go through scratch to be added in
/// order. A large one is cut into blocks of its own elements, each summed over all pixels.
class ConvolutionBackwardFilter final : public Kernel {
 public:
  ConvolutionBackwardFilter(const ops::Conv2DBackwardFilter& op, const Request& request) : size_(op.filter.size()), threads_(request.threads) {
    const Shape& x = request.inputs[0].shape;
    const Shape& dy = request.inputs[1].shape;
    grid_ = ConvGrid::forward(op.window, x, op.filter, op.groups, dy[1], dy[2]);
    source_ = {nullptr, x[1] * x[2] * x[3], x[2] * x[3], x[3]};
    channels_ = dy[3];
    const int64_t panels = int64_t(grid_.panels().size()), pixels = grid_.pixels();
    partial_ = round_up(Bytes{size_ * 4}, 64_B);
    splits_ = std::clamp<int64_t>(kPartials.value / std::max<int64_t>(1, partial_.value), 1, std::min(kSplits, std::max<int64_t>(1, pixels / kSplitPixels)));
    panel_blocks_ = std::clamp<int64_t>((kBlocks + splits_ - 1) / splits_, 1, std::max<int64_t>(1, panels));
    row_blocks_ = std::clamp<int64_t>(grid_.depth() / kRowsInBlock, 1, (kBlocks + panel_blocks_ * splits_ - 1) / (panel_blocks_ * splits_));
    phases_[0] = int(panel_blocks_ * row_blocks_ * splits_);
    phases_[1] = int(std::clamp<int64_t>(size_ / 4096, 1, kBlocks));
    scratch_ = round_up(grid_.filter_scratch(), 64_B);
  }
  std::span<const int> phases() const override { return {phases_, size_t(splits_ > 1 ? 2 : 1)}; }
  Bytes workspace() const override { return scratch_ * threads_ + (splits_ > 1 ? partial_ * splits_ : Bytes{0}); }
  void run(const Arguments& a, int phase, int block, int member) const noexcept override {
    std::byte* const partials = a.scratch + scratch_.value * threads_;
    if (phase == 1) {
      const int64_t from = size_ / 16 * block / phases_[1] * 16, to = block + 1 == phases_[1] ? size_ : size_ / 16 * (block + 1) / phases_[1] * 16;
      conv_tiles().add_up(a.output<float>(0) + from, reinterpret_cast<const float*>(partials) + from, to - from, partial_.value / 4, splits_);
      return;
    }
    const int64_t split = block % splits_, rows = block / splits_ % row_blocks_, part = block / splits_ / row_blocks_;
    const int64_t pixels = grid_.pixels(), panels = int64_t(grid_.panels().size());
    const int64_t from = pixels * split / splits_, to = pixels * (split + 1) / splits_;
    float* out = splits_ > 1 ? reinterpret_cast<float*>(partials + partial_.value * split) : a.output<float>(0);
    if (pixels == 0) {
      if (block == 0) std::memset(out, 0, size_t(size_) * 4);
      return;
    }
    Pixels<const float> source = source_;
    source.data = a.input<float>(0);
    grid_.filter_gradient(panels * part / panel_blocks_, panels * (part + 1) / panel_blocks_, rows, row_blocks_, source, a.input<float>(1) + from * channels_, channels_,
                          out, from, to, a.scratch + scratch_.value * member);
  }

 private:
  ConvGrid grid_;
  Pixels<const float> source_;
  int64_t size_, channels_ = 0, panel_blocks_ = 1, row_blocks_ = 1, splits_ = 1;
  int phases_[2] = {1, 1};
  Bytes partial_, scratch_;
  int threads_;
};

}  // namespace

std::unique_ptr<Kernel> conv2d_backward_filter(const ops::Conv2DBackwardFilter& op, const Request& request) {
  if (!all_float(request.inputs) || !all_float(request.outputs)) return slow(op, request);
  return std::make_unique<ConvolutionBackwardFilter>(op, request);
}

}  // namespace millpond::backend::cpu
