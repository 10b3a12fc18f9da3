// columns: sums and maps down the columns of a matrix, for files compiled for each instruction set.
//
// Sums and constants of a strip of columns lie in arrays of their own: L1 holds them whatever the width of the matrix
// is, and their lines are not those of the rows (rows and sums a power of two apart would all want the same few places
// in L1). The order in which the matrix is read decides the speed (GB/s of one thread, sums of 25 MB; bench of
// 2026-11-15 on Zen 4):
//
//   columns   one row after the other   four rows at a time   and in strips of 512, prefetched
//     64                39                     51                          -
//    256                40                     26                         37
//   1024                31                     35                         41
//   2048                20                     34                         41
//
// Four rows share one reading and writing of the sums, but four streams within one page are more than the processor's
// prefetch follows; the sums of 2,048 columns do not leave L1 enough room for a row.
#pragma once
#include "backend/cpu/folded.h"
#include "backend/cpu/simd.h"

namespace millpond::backend::cpu::MP_ISA {

constexpr int64_t kWide = 1024;  // columns from which on there are strips
constexpr int64_t kStrip = 512;
constexpr int64_t kPitch = kWide + 48;  // from one local array to the next

MP_INLINE void fill(float* p, float value, int64_t n) {
  const V v = set(value);
  each_vector(n, [&](int64_t i, auto t) __attribute__((always_inline)) { store(p + i, v, t); });
}

/// `count` values, once for each row of a folded one.
MP_INLINE void repeat(const float* from, int64_t fold, int64_t count, float* to) {
  for (int64_t f = 0; f < fold; ++f, to += count)
    each_vector(count, [&](int64_t i, auto t) __attribute__((always_inline)) { store(to + i, load(from + i, t), t); });
}

/// f(first column, columns) for each strip.
template <class F>
MP_INLINE void strips(const Folded& p, F&& f) {
  if (p.fold > 1) return f(0, p.cols);
  const int64_t each = p.cols < kWide ? kWide : kStrip;
  for (int64_t c = 0; c < p.cols; c += each) f(c, p.cols - c < each ? p.cols - c : each);
}

/// How far ahead to prefetch, in floats; 0: not at all.
MP_INLINE int64_t look_ahead(const Folded& p) { return p.cols < kWide ? 0 : 4 * p.stride; }
MP_INLINE void prefetch(const float* p, int64_t ahead) {
  if (ahead) _mm_prefetch(reinterpret_cast<const char*>(p + ahead), _MM_HINT_T0);
}

/// some(offset from the strip, step from row to row, rows, column in the strip, All or Tail) for four rows at a time,
/// then one.
template <class F>
MP_INLINE void down(const Folded& p, int64_t columns, F&& some) {
  const int64_t width = p.fold * columns, rows = p.rows / p.fold, step = p.fold == 1 ? p.stride : width;
  int64_t r = 0;
  if (width <= 64 || p.cols >= kWide)
    for (; r + 4 <= rows; r += 4)
      each_vector(width, [&](int64_t i, auto t) __attribute__((always_inline)) { some(r * step + i, step, 4, i, t); });
  for (; r < rows; ++r)
    each_vector(width, [&](int64_t i, auto t) __attribute__((always_inline)) { some(r * step + i, step, 1, i, t); });
  each_vector(p.rows % p.fold * columns,
              [&](int64_t i, auto t) __attribute__((always_inline)) { some(rows * step + i, step, 1, i, t); });
}

/// out[k][column], k < A: f(offset, All or Tail, c, s) takes the vector at `offset` of the matrix into s[A], which
/// begin at `start`; c[k] are the column's constants constant[k][column], k < C. What rows of a fold have gathered,
/// both(a, b) joins. kMore: out held something before, and keeps it.
template <int C, int A, bool kMore, class F, class B>
MP_INLINE void column_sums(const Folded& p, const float* const* constant, float* const* out, float start, F&& f,
                           B&& both) {
  alignas(64) float constants[C ? C : 1][kPitch], sums[A][kPitch];
  strips(p, [&](int64_t first, int64_t columns) __attribute__((always_inline)) {
    for (int k = 0; k < C; ++k) repeat(constant[k] + first, p.fold, columns, constants[k]);
    for (int k = 0; k < A; ++k) fill(sums[k], start, p.fold * columns);
    down(p, columns, [&](int64_t at, int64_t step, int64_t n, int64_t i, auto t) __attribute__((always_inline)) {
      V c[C ? C : 1], s[A];
      for (int k = 0; k < C; ++k) c[k] = load(constants[k] + i, t);
      for (int k = 0; k < A; ++k) s[k] = load(sums[k] + i, t);
      for (int64_t j = 0; j < n; ++j) f(first + at + j * step, t, c, s);
      for (int k = 0; k < A; ++k) store(sums[k] + i, s[k], t);
    });
    for (int k = 0; k < A; ++k)
      each_vector(columns, [&](int64_t i, auto t) __attribute__((always_inline)) {
        V s = kMore ? both(load(out[k] + first + i, t), load(sums[k] + i, t)) : load(sums[k] + i, t);
        for (int64_t r = 1; r < p.fold; ++r) s = both(s, load(sums[k] + r * columns + i, t));
        store(out[k] + first + i, s, t);
      });
  });
}

/// f(offset, All or Tail, c) on every vector of the matrix; constants as above.
template <int C, class F>
MP_INLINE void column_map(const Folded& p, const float* const* constant, F&& f) {
  alignas(64) float constants[C][kPitch];
  strips(p, [&](int64_t first, int64_t columns) __attribute__((always_inline)) {
    for (int k = 0; k < C; ++k) repeat(constant[k] + first, p.fold, columns, constants[k]);
    down(p, columns, [&](int64_t at, int64_t step, int64_t n, int64_t i, auto t) __attribute__((always_inline)) {
      V c[C];
      for (int k = 0; k < C; ++k) c[k] = load(constants[k] + i, t);
      for (int64_t j = 0; j < n; ++j) f(first + at + j * step, t, c);
    });
  });
}

}  // namespace millpond::backend::cpu::MP_ISA
