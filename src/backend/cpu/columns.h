// columns: sums and maps down the columns of a matrix, for files compiled for each instruction set. Four rows are read for each
// time that a column's sums are read and written.
#pragma once
#include "backend/cpu/simd.h"

namespace millpond::backend::cpu::MP_ISA {

/// Sums acc[k][column], k < A, over rows: f(offset, column, All or Tail, V s[A]) adds the vector at `offset` of the matrix.
template <int A, class F>
MP_INLINE void down_columns(int64_t rows, int64_t cols, int64_t stride, float* const (&acc)[A], F&& f) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4)
    each_vector(cols, [&](int64_t i, auto t) __attribute__((always_inline)) {
      V s[A];
      for (int k = 0; k < A; ++k) s[k] = load(acc[k] + i, t);
      for (int64_t j = 0; j < 4; ++j) f((r + j) * stride + i, i, t, s);
      for (int k = 0; k < A; ++k) store(acc[k] + i, s[k], t);
    });
  for (; r < rows; ++r)
    each_vector(cols, [&](int64_t i, auto t) __attribute__((always_inline)) {
      V s[A];
      for (int k = 0; k < A; ++k) s[k] = load(acc[k] + i, t);
      f(r * stride + i, i, t, s);
      for (int k = 0; k < A; ++k) store(acc[k] + i, s[k], t);
    });
}

/// f(offset, All or Tail, c) for every vector of the matrix, with the column's constants c[k] = constant[k][column].
template <int A, class F>
MP_INLINE void map_columns(int64_t rows, int64_t cols, int64_t stride, const float* const (&constant)[A], F&& f) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4)
    each_vector(cols, [&](int64_t i, auto t) __attribute__((always_inline)) {
      V c[A];
      for (int k = 0; k < A; ++k) c[k] = load(constant[k] + i, t);
      for (int64_t j = 0; j < 4; ++j) f((r + j) * stride + i, t, c);
    });
  for (; r < rows; ++r)
    each_vector(cols, [&](int64_t i, auto t) __attribute__((always_inline)) {
      V c[A];
      for (int k = 0; k < A; ++k) c[k] = load(constant[k] + i, t);
      f(r * stride + i, t, c);
    });
}

MP_INLINE void fill(float* p, float value, int64_t n) {
  const V v = set(value);
  each_vector(n, [&](int64_t i, auto t) __attribute__((always_inline)) { store(p + i, v, t); });
}

}  // namespace millpond::backend::cpu::MP_ISA
