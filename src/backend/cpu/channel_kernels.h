// Channel kernels: batch normalisation down the columns of a panel, and the sums it needs.
#pragma once
#include "backend/cpu/folded.h"
#include "backend/cpu/isa.h"

namespace millpond::backend::cpu {

struct ChannelKernels {
  /// For each column: a pivot near its mean, and the sums of x - pivot and of its square. Relative to a pivot the sums
  /// do not lose the variance of values that are far from zero.
  void (*moments)(const float* x, Folded p, float* pivot, float* first, float* second);
  /// Combines `count` blocks by Chan's formula, in order and in double. Block b holds counts[b] rows, its pivot, first
  /// and second at moments + b * step, `ld` floats apart. Then what normalise() wants.
  void (*combine_moments)(const float* moments, int64_t step, int64_t ld, int64_t count, int64_t rows,
                          int64_t last_rows, int64_t cols, const float* gamma, const float* beta, double epsilon,
                          float* mean, float* variance, float* scale, float* shift);
  /// y = (x - mean) scale + shift
  void (*normalise)(const float* x, Folded p, const float* mean, const float* scale, const float* shift, float* y,
                    bool stream);
  /// For each column: the sums of dy and of dy (x - mean).
  void (*gradient_sums)(const float* x, const float* dy, Folded p, const float* mean, float* first, float* second);
  /// Adds `count` blocks in order: block b has first and second at sums + b * step, `ld` floats apart. dgamma, dbeta,
  /// and the factors of dx.
  void (*combine_gradients)(const float* sums, int64_t step, int64_t ld, int64_t count, int64_t rows, int64_t cols,
                            const float* gamma, const float* variance, double epsilon, float* dgamma, float* dbeta,
                            float* by_dy, float* by_x, float* shift);
  /// dx = by_dy dy + by_x (x - mean) + shift; dx may be dy.
  void (*gradient)(const float* x, const float* dy, Folded p, const float* mean, const float* by_dy, const float* by_x,
                   const float* shift, float* dx, bool stream);
  /// out[i] = sum over k < count, in order, of x[k * ld + i]
  void (*add_up)(const float* x, int64_t ld, int64_t count, float* out, int64_t n);
};

MP_ISA_TABLE(ChannelKernels, channel_kernels)

}  // namespace millpond::backend::cpu
