#include "ops/layer_norm_backward.h"

#include "backend/cpu/channel_kernels.h"
#include "backend/cpu/row_kernels.h"
#include "backend/cpu/rows.h"
#include "backend/cpu/slow.h"

namespace millpond::backend::cpu {
namespace {

// Phase 0: dx, and sums over the rows of each block. Phase 1: the blocks' sums are added in order. One block needs no
// second phase. Scratch: [block][dgamma, dbeta][cols].
class LayerNormBackward final : public Kernel {
 public:
  explicit LayerNormBackward(Matrix x)
      : cols_(x.cols),
        rows_(x.rows, 25 + byte_time(12.0 * double(x.cols)), 1, 64),
        sums_(x.cols, 0.1 * double(2 * rows_.blocks), 64) {}
  std::span<const int> phases() const override { return {blocks_, size_t(rows_.blocks > 1 ? 2 : 1)}; }
  Bytes workspace() const override { return Bytes{rows_.blocks > 1 ? rows_.blocks * 2 * cols_ * 4 : 0}; }
  void run(const Arguments& a, int phase, int block, int) const noexcept override {
    float* const partial = reinterpret_cast<float*>(a.scratch);
    if (phase == 0) {
      const int64_t begin = rows_.begin(block), at = begin * cols_;
      float* const sums = partial + block * 2 * cols_;
      const bool alone = rows_.blocks == 1;
      row_kernels_.layer_norm_backward(a.input<float>(0) + at, a.input<float>(1), a.input<float>(2) + begin,
                                       a.input<float>(3) + begin, a.input<float>(4) + at, a.output<float>(0) + at,
                                       alone ? a.output<float>(1) : sums, alone ? a.output<float>(2) : sums + cols_,
                                       rows_.end(block) - begin, cols_);
    } else {
      const int64_t begin = sums_.begin(block), n = sums_.end(block) - begin;
      for (int k = 0; k < 2; ++k)
        channel_kernels_.add_up(partial + k * cols_ + begin, 2 * cols_, rows_.blocks, a.output<float>(1 + k) + begin,
                                n);
    }
  }

 private:
  int64_t cols_;
  Runs rows_, sums_;
  int blocks_[2] = {rows_.blocks, sums_.blocks};
  const RowKernels& row_kernels_ = row_kernels();
  const ChannelKernels& channel_kernels_ = channel_kernels();
};

}  // namespace

std::unique_ptr<Kernel> layer_norm_backward(const ops::LayerNormBackward& op, const Request& request) {
  const Matrix x(request.inputs[0].shape);
  if (!all_float(request.inputs) || x.cols == 0) return slow(op, request);
  return std::make_unique<LayerNormBackward>(x);
}

}  // namespace millpond::backend::cpu
