#include "ops/batch_norm.h"

#include "backend/cpu/channel_kernels.h"
#include "backend/cpu/channels.h"
#include "backend/cpu/slow.h"

namespace millpond::backend::cpu {
namespace {

// Phase 0 adds up, in each block of rows, the first and second powers of x relative to a pivot. Phase 1 combines the
// sums of the blocks, in their order, to mean and variance. Phase 2 computes y and begins with the last block, because
// the x of that block was read last and may still lie in the cache. Little work is one block, which does all three in
// phase 0.
// Scratch holds [row block][pivot, first, second][channels], and behind that scale and shift of each channel.
class BatchNorm final : public Kernel {
 public:
  BatchNorm(Matrix x, double epsilon)
      : epsilon_(epsilon),
        grid_(x, byte_time(4)),
        combine_(x.cols, 1.5 * grid_.rows.blocks + 10, 64),
        stream_(x.rows * x.cols * 4 >= kStreamBytes),
        blocks_{grid_.blocks(), combine_.blocks, grid_.blocks()} {}
  std::span<const int> phases() const override { return {blocks_, size_t(grid_.blocks() > 1 ? 3 : 1)}; }
  Bytes workspace() const override { return Bytes{(grid_.rows.blocks * 3 + 2) * grid_.channels * 4}; }
  void run(const Arguments& a, int phase, int block, int) const noexcept override {
    switch (phase) {
      case 0:
        sum(a, block);
        if (grid_.blocks() > 1) return;
        for (int c = 0; c < combine_.blocks; ++c) combine(a, c);
        return normalise(a, 0);
      case 1:
        return combine(a, block);
      default:
        return normalise(a, grid_.blocks() - 1 - block);
    }
  }

 private:
  float* moments(const Arguments& a) const { return reinterpret_cast<float*>(a.scratch); }
  float* scale(const Arguments& a) const { return moments(a) + grid_.rows.blocks * 3 * grid_.channels; }
  void sum(const Arguments& a, int block) const {
    const ChannelGrid::Block b = grid_.block(block);
    float* const to = moments(a) + b.row_block * 3 * grid_.channels + b.col;
    kernels_.moments(a.input<float>(0) + b.at, b.panel, to, to + grid_.channels, to + 2 * grid_.channels);
  }
  void combine(const Arguments& a, int block) const {
    const int64_t begin = combine_.begin(block), n = grid_.channels;
    const int last = grid_.rows.blocks - 1;
    kernels_.combine_moments(moments(a) + begin, 3 * n, n, last + 1, grid_.rows.size,
                             grid_.rows.end(last) - grid_.rows.begin(last), combine_.end(block) - begin,
                             a.input<float>(1) + begin, a.input<float>(2) + begin, epsilon_, a.output<float>(1) + begin,
                             a.output<float>(2) + begin, scale(a) + begin, scale(a) + n + begin);
  }
  void normalise(const Arguments& a, int block) const {
    const ChannelGrid::Block b = grid_.block(block);
    kernels_.normalise(a.input<float>(0) + b.at, b.panel, a.output<float>(1) + b.col, scale(a) + b.col,
                       scale(a) + grid_.channels + b.col, a.output<float>(0) + b.at, stream_);
  }

  double epsilon_;
  ChannelGrid grid_;
  Runs combine_;
  bool stream_;
  int blocks_[3];
  const ChannelKernels& kernels_ = channel_kernels();
};

}  // namespace

std::unique_ptr<Kernel> batch_norm(const ops::BatchNorm& op, const Request& request) {
  const Matrix x(request.inputs[0].shape);
  if (!all_float(request.inputs) || x.rows * x.cols == 0) return slow(op, request);
  return std::make_unique<BatchNorm>(x, op.epsilon);
}

}  // namespace millpond::backend::cpu
