#include "backend/cpu/gemm_kernels.h"

#include "backend/cpu/simd.h"

namespace millpond::backend::cpu::MP_ISA {
namespace {

// A tile of C stays in registers while the inner dimension goes by: its sums, a row of B and an element of A take 29 of
// 32 registers with AVX-512, 11 of 16 with AVX2.
#if defined(__AVX512F__)
constexpr int kRows = 6, kVectors = 4;
#else
constexpr int kRows = 4, kVectors = 2;
#endif

/// The last of the `vectors` is touched through `last`.
template <int rows, int vectors, class Last>
MP_INLINE void tile(const Gemm::Size& s, const float* a, const float* b, float* c, Last last) {
  V sums[rows][vectors];
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) {
      const float* p = c + r * s.ldc + v * kLanes;
      sums[r][v] = !s.add ? zero() : v + 1 < vectors ? load(p) : load(p, last);
    }
  const int64_t along = s.trans_a ? s.lda : 1, down = s.trans_a ? 1 : s.lda;
  for (int64_t k = 0; k < s.k; ++k, a += along, b += s.ldb) {
    V row[vectors];
    for (int v = 0; v < vectors; ++v) row[v] = v + 1 < vectors ? load(b + v * kLanes) : load(b + v * kLanes, last);
    for (int r = 0; r < rows; ++r) {
      const V one = set(a[r * down]);
      for (int v = 0; v < vectors; ++v) sums[r][v] = fma(one, row[v], sums[r][v]);
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) {
      float* p = c + r * s.ldc + v * kLanes;
      if (v + 1 < vectors)
        store(p, sums[r][v]);
      else
        store(p, sums[r][v], last);
    }
}

template <int vectors, class Last>
MP_INLINE void columns(const Gemm::Size& s, const float* a, const float* b, float* c, Last last) {
  const int64_t down = s.trans_a ? 1 : s.lda;
  int64_t m = 0;
  for (; m + kRows <= s.m; m += kRows) tile<kRows, vectors>(s, a + m * down, b, c + m * s.ldc, last);
  for (; m + 2 <= s.m; m += 2) tile<2, vectors>(s, a + m * down, b, c + m * s.ldc, last);
  if (m < s.m) tile<1, vectors>(s, a + m * down, b, c + m * s.ldc, last);
}

void product(const Gemm::Size& s, const float* a, const float* b, float* c) {
  constexpr int64_t kWide = kVectors * kLanes;
  int64_t n = 0;
  for (; n + kWide <= s.n; n += kWide) columns<kVectors>(s, a, b + n, c + n, All{});
  for (; n + kLanes <= s.n; n += kLanes) columns<1>(s, a, b + n, c + n, All{});
  if (n < s.n) columns<1>(s, a, b + n, c + n, tail(s.n - n));
}

// Four rows of C at a time; the compiler makes vectors of the columns.
template <int rows>
MP_INLINE void double_rows(const Gemm::Size& s, const double* a, const double* b, double* c) {
  constexpr int64_t kStrip = 32;
  const int64_t along = s.trans_a ? s.lda : 1, down = s.trans_a ? 1 : s.lda;
  for (int64_t n0 = 0; n0 < s.n; n0 += kStrip) {
    const int64_t n = s.n - n0 < kStrip ? s.n - n0 : kStrip;
    double t[rows][kStrip];
    for (int r = 0; r < rows; ++r)
      for (int64_t j = 0; j < kStrip; ++j) t[r][j] = s.add && j < n ? c[r * s.ldc + n0 + j] : 0.0;
    for (int64_t k = 0; k < s.k; ++k) {
      const double* row = b + k * s.ldb + n0;
      double held[kStrip];
      if (n == kStrip)
        for (int64_t j = 0; j < kStrip; ++j) held[j] = row[j];
      else
        for (int64_t j = 0; j < kStrip; ++j) held[j] = j < n ? row[j] : 0.0;
      for (int r = 0; r < rows; ++r) {
        const double one = a[r * down + k * along];
        for (int64_t j = 0; j < kStrip; ++j) t[r][j] += one * held[j];
      }
    }
    for (int r = 0; r < rows; ++r)
      for (int64_t j = 0; j < n; ++j) c[r * s.ldc + n0 + j] = t[r][j];
  }
}
void doubles(const Gemm::Size& s, const float* fa, const float* fb, float* fc) {
  const double *a = reinterpret_cast<const double*>(fa), *b = reinterpret_cast<const double*>(fb);
  double* c = reinterpret_cast<double*>(fc);
  const int64_t down = s.trans_a ? 1 : s.lda;
  int64_t m = 0;
  for (; m + 4 <= s.m; m += 4) double_rows<4>(s, a + m * down, b, c + m * s.ldc);
  for (; m < s.m; ++m) double_rows<1>(s, a + m * down, b, c + m * s.ldc);
}

// Only until code for the size is generated, or where that fails: plain.
void pairs(const Gemm::Size& s, const float* fa, const float* fb, float* c) {
  const auto *a = reinterpret_cast<const uint16_t*>(fa), *b = reinterpret_cast<const uint16_t*>(fb);
  const auto wide = [](uint16_t v) { return __builtin_bit_cast(float, uint32_t(v) << 16); };
  for (int64_t m = 0; m < s.m; ++m, c += s.ldc) {
    if (!s.add)
      for (int64_t j = 0; j < s.n; ++j) c[j] = 0;
    for (int64_t k = 0; k < s.k; ++k) {
      const float one = wide(s.trans_a ? a[k * s.lda + m] : a[m * s.lda + k]);
      const uint16_t* row = b + k / 2 * s.ldb * 2 + k % 2;
      for (int64_t j = 0; j < s.n; ++j) c[j] += one * wide(row[2 * j]);
    }
  }
}

}  // namespace

const GemmKernels gemm_kernels = {product, doubles, pairs};

}  // namespace millpond::backend::cpu::MP_ISA
