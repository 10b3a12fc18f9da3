#include "backend/cpu/conv_pool_gradient.h"

#include "backend/cpu/conv_simd.h"

namespace millpond::backend::cpu::MP_ISA {
#ifdef __AVX512F__
namespace {

struct Row {
  const float *upper, *lower;  // pixels of the first cell under the first tap, for winners above and below
  int64_t dilation;            // floats from tap to tap
  const uint16_t* winners;     // of the first cell and vector
  int64_t masks;               // from cell to cell
  const float* g;
  int64_t cout;
  int64_t cols;
  float* sums;  // of the first tap and vector
  int64_t wide;
  float* bias;  // null: has been summed already
  int tail;     // channels of the last vector
};

/// Two pixels of a row in the lower half of a register, the two below them in the upper.
template <int kC, bool kMasked>
MP_INLINE V two_rows(const float* above, const float* below) {
  if constexpr (kMasked) {
    constexpr __mmask8 kPixels = __mmask8((1u << (2 * kC)) - 1);
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_maskz_loadu_ps(kPixels, above)),
                              _mm256_maskz_loadu_ps(kPixels, below), 1);
  } else {
    return _mm512_mask_loadu_ps(_mm512_castps256_ps512(_mm256_loadu_ps(above)), 0xff00, below - 8);
  }
}

/// kT taps beside each other times kC channels times kH vectors of sums stay in registers for a row of cells.
template <int kC, int kT, int kH>
void taps_of_row(const Row& r) {
  V sum[kT][kC][kH], bias[kH];
  MP_UNROLL for (int t = 0; t < kT; ++t) MP_UNROLL for (int c = 0; c < kC; ++c) MP_UNROLL for (int h = 0; h < kH; ++h)
      sum[t][c][h] = load(r.sums + (t * kC + c) * r.wide + 16 * h);
  MP_UNROLL for (int h = 0; h < kH; ++h) bias[h] = zero();
  const Tail last = tail_of(r.tail);
  const float *upper = r.upper, *lower = r.lower, *g = r.g;
  const uint16_t* w = r.winners;
  auto one_cell = [&]<bool kMasked>() __attribute__((always_inline)) {
    V d[kH];
    I at[kH][kC];  // lane in the register of candidates: 8 for the lower row, kC for the right pixel, the channel
    MP_UNROLL for (int h = 0; h < kH; ++h) {
      d[h] = h + 1 < kH ? load(g + 16 * h) : load(g + 16 * h, last);
      bias[h] = add(bias[h], d[h]);
      at[h][0] = _mm512_maskz_mov_epi32(w[2 * h], seti(kC));
      at[h][0] = _mm512_mask_add_epi32(at[h][0], w[2 * h + 1], at[h][0], seti(8));
      MP_UNROLL for (int c = 1; c < kC; ++c) at[h][c] = addi(at[h][0], seti(c));
    }
    MP_UNROLL for (int t = 0; t < kT; ++t) {
      const V candidates = two_rows<kC, kMasked>(upper + t * r.dilation, lower + t * r.dilation);
      MP_UNROLL for (int c = 0; c < kC; ++c) MP_UNROLL for (int h = 0; h < kH; ++h) sum[t][c][h] =
          fma(d[h], _mm512_permutexvar_ps(at[h][c], candidates), sum[t][c][h]);
    }
    upper += 2 * kC, lower += 2 * kC, g += r.cout, w += r.masks;
  };
  constexpr int64_t kCareful =
      (8 - 2 * kC + 2 * kC - 1) / (2 * kC);  // cells at the end of a row that 8 floats go beyond
  int64_t cell = 0;
  for (; cell < r.cols - kCareful; ++cell) one_cell.template operator()<false>();
  for (; cell < r.cols; ++cell) one_cell.template operator()<true>();
  MP_UNROLL for (int t = 0; t < kT; ++t) MP_UNROLL for (int c = 0; c < kC; ++c) MP_UNROLL for (int h = 0; h < kH; ++h)
      store(r.sums + (t * kC + c) * r.wide + 16 * h, sum[t][c][h]);
  if (r.bias) MP_UNROLL for (int h = 0; h < kH; ++h) store(r.bias + 16 * h, add(load(r.bias + 16 * h), bias[h]));
}

/// All taps of one row of the kernel.
template <int kC, int kH>
void kernel_row(Row r, int64_t taps) {
  constexpr int kMost = kC == 4 ? 2 : 3;  // 24 sums at most: 8 registers are for the rest
  while (taps > 0) {
    const int64_t now = taps < kMost ? taps : kMost;
    if (now == 3) {
      if constexpr (kMost == 3) taps_of_row<kC, 3, kH>(r);
    } else if (now == 2) {
      taps_of_row<kC, 2, kH>(r);
    } else {
      taps_of_row<kC, 1, kH>(r);
    }
    taps -= now;
    r.upper += now * r.dilation, r.lower += now * r.dilation, r.sums += now * kC * r.wide, r.bias = nullptr;
  }
}

template <int kC>
void by_vectors(const Row& r, int64_t taps, bool two) {
  if (two)
    kernel_row<kC, 2>(r, taps);
  else
    kernel_row<kC, 1>(r, taps);
}

/// Row y of the image with its borders.
void copy_row(const PoolGradientShape& s, const float* image, int64_t y, float* to) {
  const int64_t row = s.width * s.cin;
  for (int64_t x = 0; x < s.row_floats; ++x) {
    const int64_t at = x - s.left * s.cin;
    to[x] = y >= 0 && y < s.height && at >= 0 && at < row ? image[y * row + at] : 0;
  }
}

void add_rows(const PoolGradientShape& s, const float* image, const uint16_t* winners, const float* dpooled,
              float* sums, int64_t first, int64_t last, float* ring) noexcept {
  const int64_t vectors = s.vectors(), wide = vectors * 16, span = s.span();
  float* const bias = sums + s.kernel_h * s.kernel_w * s.cin * wide;
  int64_t copied = first * 2 * s.stride_h - s.top;
  for (int64_t r = first; r < last; ++r) {
    const int64_t y = r * 2 * s.stride_h - s.top;
    if (s.row_floats)
      for (copied = copied > y ? copied : y; copied < y + span; ++copied)
        copy_row(s, image, copied, ring + (copied + s.top) % span * s.row_floats);
    auto row_at = [&](int64_t k) {
      return s.row_floats ? ring + (k + s.top) % span * s.row_floats : image + k * s.width * s.cin;
    };
    for (int64_t v = 0; v < vectors; v += 2) {
      const bool two = v + 1 < vectors;
      const int64_t end = v + (two ? 2 : 1), tail = s.cout - 16 * (end - 1) < 16 ? s.cout - 16 * (end - 1) : 16;
      for (int64_t i = 0; i < s.kernel_h; ++i) {
        const Row row{row_at(y + i * s.dilation_h),
                      row_at(y + i * s.dilation_h + s.stride_h),
                      s.dilation_w * s.cin,
                      winners + (r * s.cols * vectors + v) * 2,
                      vectors * 2,
                      dpooled + r * s.cols * s.cout + 16 * v,
                      s.cout,
                      s.cols,
                      sums + i * s.kernel_w * s.cin * wide + 16 * v,
                      wide,
                      i == 0 ? bias + 16 * v : nullptr,
                      int(tail)};
        switch (s.cin) {
          case 1:
            by_vectors<1>(row, s.kernel_w, two);
            break;
          case 2:
            by_vectors<2>(row, s.kernel_w, two);
            break;
          case 3:
            by_vectors<3>(row, s.kernel_w, two);
            break;
          default:
            by_vectors<4>(row, s.kernel_w, two);
            break;
        }
      }
    }
  }
}

}  // namespace
extern const PoolGradientTable pool_gradient_table = {add_rows};
#else
extern const PoolGradientTable pool_gradient_table = {nullptr};
#endif

}  // namespace millpond::backend::cpu::MP_ISA
