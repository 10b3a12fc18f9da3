#include "ops/batch_norm_backward.h"

#include "backend/cpu/channel_kernels.h"
#include "backend/cpu/channels.h"
#include "backend/cpu/slow.h"

namespace millpond::backend::cpu {
namespace {

// Phase 0: each block's sums of dy and dy (x - mean). Phase 1: dgamma, dbeta and the factors of dx, blocks added in
// order. Phase 2: dx, the last block first. Little work is all three in one block. Scratch: [row block][first,
// second][channels], then three factors.
class BatchNormBackward final : public Kernel {
 public:
  BatchNormBackward(Matrix x, double epsilon)
      : epsilon_(epsilon),
        x_rows_(x.rows),
        grid_(x, byte_time(8)),
        combine_(x.cols, 0.5 * grid_.rows.blocks + 10, 64),
        stream_(x.rows * x.cols * 4 >= kStreamBytes),
        blocks_{grid_.blocks(), combine_.blocks, grid_.blocks()} {}
  std::span<const int> phases() const override { return {blocks_, size_t(grid_.blocks() > 1 ? 3 : 1)}; }
  Bytes workspace() const override { return Bytes{(grid_.rows.blocks * 2 + 3) * grid_.channels * 4}; }
  void run(const Arguments& a, int phase, int block, int) const noexcept override {
    switch (phase) {
      case 0:
        sum(a, block);
        if (grid_.blocks() > 1) return;
        for (int c = 0; c < combine_.blocks; ++c) combine(a, c);
        return gradient(a, 0);
      case 1:
        return combine(a, block);
      default:
        return gradient(a, grid_.blocks() - 1 - block);
    }
  }

 private:
  float* sums(const Arguments& a) const { return reinterpret_cast<float*>(a.scratch); }
  float* factors(const Arguments& a) const { return sums(a) + grid_.rows.blocks * 2 * grid_.channels; }
  void sum(const Arguments& a, int block) const {
    const ChannelGrid::Block b = grid_.block(block);
    float* const to = sums(a) + b.row_block * 2 * grid_.channels + b.col;
    kernels_.gradient_sums(a.input<float>(0) + b.at, a.input<float>(4) + b.at, b.panel, a.input<float>(2) + b.col, to,
                           to + grid_.channels);
  }
  void combine(const Arguments& a, int block) const {
    const int64_t begin = combine_.begin(block), n = grid_.channels;
    float* const f = factors(a) + begin;
    kernels_.combine_gradients(sums(a) + begin, 2 * n, n, grid_.rows.blocks, x_rows_, combine_.end(block) - begin,
                               a.input<float>(1) + begin, a.input<float>(3) + begin, epsilon_,
                               a.output<float>(1) + begin, a.output<float>(2) + begin, f, f + n, f + 2 * n);
  }
  void gradient(const Arguments& a, int block) const {
    const ChannelGrid::Block b = grid_.block(block);
    const float* const f = factors(a) + b.col;
    kernels_.gradient(a.input<float>(0) + b.at, a.input<float>(4) + b.at, b.panel, a.input<float>(2) + b.col, f,
                      f + grid_.channels, f + 2 * grid_.channels, a.output<float>(0) + b.at, stream_);
  }

  double epsilon_;
  int64_t x_rows_;
  ChannelGrid grid_;
  Runs combine_;
  bool stream_;
  int blocks_[3];
  const ChannelKernels& kernels_ = channel_kernels();
};

}  // namespace

std::unique_ptr<Kernel> batch_norm_backward(const ops::BatchNormBackward& op, const Request& request) {
  const Matrix x(request.inputs[0].shape);
  if (!all_float(request.inputs) || x.rows * x.cols == 0) return slow(op, request);
  return std::make_unique<BatchNormBackward>(x, op.epsilon);
}

}  // namespace millpond::backend::cpu
