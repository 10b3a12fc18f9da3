// Inner loops of products and of dense layers' backward where LIBXSMM does not serve: fewer output columns than a
// vector has lanes, and sizes so small that a call would cost more than the work.
#pragma once
#include <cstdint>

#include "backend/cpu/isa.h"
#include "backend/cpu/rule_kernels.h"

namespace millpond::backend::cpu {

inline constexpr int kNarrow = 15;  // most columns of the narrow loops
inline constexpr int64_t kNarrowChunk =
    512;  // inner elements of a narrow product at a time: B^T, 30 KiB at most, stays in L1
inline constexpr int64_t kFeatureChunk = 64;  // features of a narrow backward at a time

/// Backward of a dense layer with `out` <= kNarrow columns, for a run of input features: gradient x^T dz through the
/// rule into the weights; before that, where dx is wanted, dx = dz w^T from the old weights, which may be written over
/// x.
struct NarrowBackward {
  const float* x;  // [rows, features], rows ldx apart
  int64_t ldx;
  const float* dz;  // [rows, out]
  int64_t rows, features;
  float* const* parameter;  // weight, slots: [features, out] each
  int slots;
  RulePass pass;
  RuleStep step;
  float* dx;  // rows lddx apart; null: not wanted
  int64_t lddx;
  const float* gate;  // dx becomes 0 where this is not positive; rows ldx apart; null: no gate
  float* scratch;     // narrow_backward_floats(out)
  bool ahead;         // x comes from memory: fetch the next features' rows in good time
};
constexpr int64_t narrow_backward_floats(int64_t out) { return 3 * out * kFeatureChunk + 32; }

enum class Ending : uint8_t { kNone, kBias, kBiasRelu };  // what a tiny product does with its result

struct DenseKernels {
  /// y[c * ldy + r] = x[r * ldx + c]
  void (*turn)(const float* x, int64_t ldx, float* y, int64_t ldy, int64_t rows, int64_t cols);
  /// Brings `count` floats into L2, in the order in which they lie.
  void (*fetch)(const float* x, int64_t count);
  /// out[c] = sum over rows of x[r * ld + c]
  void (*column_sums)(const float* x, int64_t ld, int64_t rows, int64_t cols, float* out);
  void (*narrow_backward[kNarrow + 1])(const NarrowBackward& a);

  /// bt[n * ld + k] = b[k * n_cols + n]
  void (*narrow_turn[kNarrow + 1])(const float* b, int64_t inner, float* bt, int64_t ld);
  /// sums[m * n_cols + n] of a narrow product with B turned: bt [n_cols, inner], rows ldbt apart; complete in one
  /// chunk.
  void (*narrow_product[kNarrow + 1])(const float* a, int64_t lda, const float* bt, int64_t ldbt, int64_t rows,
                                      int64_t inner, float* c);
  /// The same in chunks: sums are kept as vectors, `lanes` floats each, in `acc`; `first` begins them.
  /// `ahead`: a comes from memory, fetch the next chunk's rows in good time. acc: (rows + 16) * n_cols * lanes floats.
  void (*narrow_partial[kNarrow + 1])(const float* a, int64_t lda, const float* bt, int64_t ldbt, int64_t rows,
                                      int64_t inner, float* acc, bool first, bool ahead);
  /// c[i] = sum of the lanes of vector i
  void (*narrow_reduce)(const float* acc, int64_t count, float* c);
  int lanes;

  /// c [m, n] = a [m, k] b [k, n] for n <= lanes, all rows packed; `bias` as the ending says.
  void (*tiny_product[3])(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n, const float* bias);
  /// The update of a small dense layer in one call, with a rule that is written out; with a bias, its parameters
  /// follow.
  using SmallUpdate = void (*)(const RuleStep& s, const float* x, const float* dz, int64_t rows, int64_t in,
                               int64_t out, float* const* kernel, float* const* bias);
  SmallUpdate (*small_update)(WrittenRule kind, bool nesterov, bool decay);
  /// c [m] = a [m, k] b [k], the ending with bias[0].
  void (*column_product[3])(const float* a, const float* b, float* c, int64_t m, int64_t k, const float* bias);
  /// The whole backward of a small dense layer with one output; dx may lie over x or the gate, both or one of which may
  /// be null.
  using SmallBackward = void (*)(const RuleStep& s, const float* x, const float* dz, int64_t rows, int64_t in,
                                 float* const* kernel, float* const* bias, float* dx, const float* gate);
  SmallBackward (*small_backward)(WrittenRule kind, bool nesterov, bool decay);
};
MP_ISA_TABLE(DenseKernels, dense_kernels)

/// For rows of n elements that are few: on AVX-512, half a vector with a mask is slower than a whole one of AVX2, above
/// all where it is written and soon read again.
inline const DenseKernels& dense_kernels_for(int64_t n) {
  return n % 16 == 8 && n < 64 ? avx2::dense_kernels : dense_kernels();
}

}  // namespace millpond::backend::cpu
