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

}  // namespace

const GemmKernels gemm_kernels = {product};

}  // namespace millpond::backend::cpu::MP_ISA
