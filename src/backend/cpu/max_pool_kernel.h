// Kernels of the four pools: blocks are runs of rows of one image, so each row of an output, or of dx, has one writer.
#pragma once
#include <algorithm>

#include "backend/cpu/blocks.h"
#include "backend/cpu/max_pool_rows.h"
#include "backend/host/kernel.h"
#include "ops/conv2d.h"

namespace millpond::backend::cpu {

inline PoolShape pool_shape(const ops::Window& w, const Shape& x, const Shape& y) {
  return {x[0],    x[1],       x[2],       x[3],         y[1],         y[2],  w.height,
          w.width, w.stride_h, w.stride_w, w.dilation_h, w.dilation_w, w.top, w.left};
}

/// `Rows` is called with (shape, arguments, image, first row, last row).
template <class Rows>
class PoolKernel final : public Kernel {
 public:
  /// rows: of the result; row_floats: what a row reads and writes.
  PoolKernel(const PoolShape& s, int64_t rows, double row_floats, Rows run_rows) : s_(s), run_rows_(run_rows) {
    // About 0.1 ns a float. dx is cleared before it is added to: a block of it should stay in L2.
    const int64_t images = std::max<int64_t>(1, s.images);
    runs_ = Runs(rows, row_floats * 0.1, 1, int(std::max<int64_t>(1, 256 / images)));
    per_block_ = runs_.blocks > 1
                     ? 1
                     : std::max<int64_t>(1, int64_t(kBlockTime / std::max(1.0, row_floats * 0.1 * double(rows))));
    blocks_ = int(std::max<int64_t>(1, ceil_div(s.images, per_block_))) * runs_.blocks;
  }
  std::span<const int> phases() const override { return {&blocks_, 1}; }
  void run(const Arguments& a, int, int block, int) const noexcept override {
    const int64_t n = block / runs_.blocks * per_block_;
    const int part = block % runs_.blocks;
    for (int64_t k = n; k < std::min(n + per_block_, s_.images); ++k)
      if (runs_.begin(part) < runs_.end(part)) run_rows_(s_, a, k, runs_.begin(part), runs_.end(part));
  }

 private:
  PoolShape s_;
  Rows run_rows_;
  Runs runs_;
  int64_t per_block_ = 1;
  int blocks_ = 1;
};

template <class Rows>
std::unique_ptr<Kernel> pool_kernel(const PoolShape& s, int64_t rows, double row_floats, Rows run_rows) {
  return std::make_unique<PoolKernel<Rows>>(s, rows, row_floats, run_rows);
}

}  // namespace millpond::backend::cpu
