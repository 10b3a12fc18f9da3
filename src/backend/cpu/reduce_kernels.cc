#include "backend/cpu/reduce_kernels.h"

#include "backend/cpu/columns.h"

namespace millpond::backend::cpu::MP_ISA {
namespace {

constexpr int64_t L = kLanes;

struct Sum {
  static constexpr float kStart = 0;
  static MP_INLINE V take(V acc, V v) { return add(acc, v); }
  static MP_INLINE double one(V acc) { return double(sum(acc)); }
  static MP_INLINE double both(double a, double b) { return a + b; }
  static MP_INLINE double finish(double a, float count) { return a / double(count); }
};
struct Max {
  static constexpr float kStart = -__builtin_inff();
  // max(v, acc) keeps acc where it is NaN
  static MP_INLINE V take(V acc, V v) { return select(unordered(v, v), v, max(v, acc)); }
  static MP_INLINE double both(double a, double b) { return b > a || b != b ? b : a; }
  static MP_INLINE double one(V acc) {
    if (any(unordered(acc, acc))) return double(__builtin_nanf(""));
    return double(largest(acc));
  }
  static MP_INLINE double finish(double a, float) { return a; }
};

/// Of a piece that is short enough to be summed in float.
template <class R>
MP_INLINE double piece(const float* x, int64_t n) {
  const V start = set(R::kStart);
  V a = start, b = start, c = start, d = start;
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L) {
    a = R::take(a, load(x + i));
    b = R::take(b, load(x + i + L));
    c = R::take(c, load(x + i + 2 * L));
    d = R::take(d, load(x + i + 3 * L));
  }
  for (; i + L <= n; i += L) a = R::take(a, load(x + i));
  if (i < n) {
    const Tail t = tail(n - i);
    b = R::take(b, keep_or(load(x + i, t), start, t));
  }
  return R::one(R::take(R::take(a, b), R::take(c, d)));
}

template <class R>
double all(const float* x, int64_t n) {
  double total = double(R::kStart);
  for (int64_t i = 0; i < n; i += 4096) total = R::both(total, piece<R>(x + i, n - i < 4096 ? n - i : 4096));
  return total;
}

template <class R>
void rows(const float* x, int64_t count, int64_t cols, float over, float* out) {
  if (cols <= L) {
    const Tail t = tail(cols);
    const V start = set(R::kStart);
    for (int64_t r = 0; r < count; ++r, x += cols)
      out[r] = float(R::finish(R::one(keep_or(load(x, t), start, t)), over));
    return;
  }
  for (int64_t r = 0; r < count; ++r, x += cols) out[r] = float(R::finish(all<R>(x, cols), over));
}

template <class R>
void columns(const float* x, Folded p, float* acc) {
  float* const out[1] = {acc};
  const int64_t ahead = look_ahead(p);
  column_sums<0, 1, true>(
      p, nullptr, out, R::kStart,
      [&](int64_t at, auto t, V(&)[1], V(&s)[1]) __attribute__((always_inline)) {
        prefetch(x + at, ahead);
        s[0] = R::take(s[0], load(x + at, t));
      },
      [](V a, V b) __attribute__((always_inline)) { return R::take(a, b); });
}

template <class R>
void combine(const float* x, int64_t ld, int64_t times, float count, float* out, int64_t n) {
  constexpr int64_t kStrip = 64;
  for (int64_t begin = 0; begin < n; begin += kStrip) {
    const int64_t m = n - begin < kStrip ? n - begin : kStrip;
    double total[kStrip];
    for (int64_t i = 0; i < m; ++i) total[i] = double(R::kStart);
    for (int64_t k = 0; k < times; ++k)
      for (int64_t i = 0; i < m; ++i) total[i] = R::both(total[i], double(x[k * ld + begin + i]));
    for (int64_t i = 0; i < m; ++i) out[begin + i] = float(R::finish(total[i], count));
  }
}

void fill_values(float* p, float value, int64_t n) { MP_ISA::fill(p, value, n); }

}  // namespace

extern const ReduceKernels reduce_kernels;
const ReduceKernels reduce_kernels = {
    {rows<Sum>, all<Sum>, columns<Sum>, combine<Sum>, fill_values},
    {rows<Max>, all<Max>, columns<Max>, combine<Max>, fill_values},
};

}  // namespace millpond::backend::cpu::MP_ISA
