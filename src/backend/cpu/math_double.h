// Functions of doubles, without branches, so that the compiler makes vectors of a loop over them. Within 2 ulp, tanh
// and log1p within 4 (tests/backend/typed_test.cc). Special values are the C library's. erf and power are the C
// library's own, an element at a time.
#pragma once
#include "backend/cpu/simd.h"

namespace millpond::backend::cpu::MP_ISA {

MP_INLINE double pick(bool c, double a, double b) { return c ? a : b; }

/// 2^n for whole n in [-1022, 1023].
MP_INLINE double power_of_two(int64_t n) { return __builtin_bit_cast(double, (n + 1023) << 52); }

struct Halved {
  double r, scale, scale2;  // x = n ln2 + r, exp(x) = exp(r) scale scale2
};
MP_INLINE Halved halved(double x) {
  // Rounding to a whole number by adding 1.5 * 2^52 leaves that number in the low bits too: no conversion is needed,
  // which AVX2 lacks.
  constexpr double kShift = 6755399441055744.0;
  const double t = x * 1.4426950408889634 + kShift;
  const double n = t - kShift;
  const int64_t k = __builtin_bit_cast(int64_t, t) - __builtin_bit_cast(int64_t, kShift);
  double r = x - n * 0.693147180369123816490;
  r -= n * 1.90821492927058770002e-10;
  const int64_t h = k >> 1;  // in two halves, so that neither leaves the normal range
  return {r, power_of_two(h), power_of_two(k - h)};
}

/// (exp(r) - 1) / r - 1 over r: r^2 times this plus r is exp(r) - 1, |r| <= ln2 / 2.
MP_INLINE double exp_tail(double r) {
  double q = 1.0 / 6227020800;  // 1 / 13!
  q = q * r + 1.0 / 479001600;
  q = q * r + 1.0 / 39916800;
  q = q * r + 1.0 / 3628800;
  q = q * r + 1.0 / 362880;
  q = q * r + 1.0 / 40320;
  q = q * r + 1.0 / 5040;
  q = q * r + 1.0 / 720;
  q = q * r + 1.0 / 120;
  q = q * r + 1.0 / 24;
  q = q * r + 1.0 / 6;
  return q * r + 0.5;
}

MP_INLINE double exp_of(double x) {
  const double c = pick(x > 710.0, 710.0, pick(x < -746.0, -746.0, x));  // NaN stays
  const Halved h = halved(c);
  return (1.0 + (h.r + h.r * h.r * exp_tail(h.r))) * h.scale * h.scale2;
}

/// exp(x) - 1 for x <= 0.
MP_INLINE double expm1_below(double x) {
  const double c = pick(x < -746.0, -746.0, x);
  const Halved h = halved(c);
  const double tail = h.r + h.r * h.r * exp_tail(h.r), s = h.scale * h.scale2;
  return s * tail + (s - 1.0);
}

MP_INLINE double log_of(double x) {
  const bool small = x < 2.2250738585072014e-308;  // subnormal: bring it up first
  const double y = pick(small, x * 18014398509481984.0, x);
  const int64_t kBase = 0x3fe6a09e667f3bcd;  // sqrt(1/2)
  const int64_t b = __builtin_bit_cast(int64_t, y) - kBase;
  const int64_t e = b >> 52;
  const double m = __builtin_bit_cast(double, (b & 0xfffffffffffff) + kBase);
  // as a double without a conversion: e is small
  const double k = __builtin_bit_cast(double, e + 0x4338000000000000) - 6755399441055744.0 - pick(small, 54.0, 0.0);
  // log(1 + f) = f - f^2/2 + s (f^2/2 + R), s = f / (2 + f), R = 2 s^2/3 + 2 s^4/5 + ...
  const double f = m - 1.0, s = f / (2.0 + f), z = s * s;
  double p = 2.0 / 25;
  p = p * z + 2.0 / 23;
  p = p * z + 2.0 / 21;
  p = p * z + 2.0 / 19;
  p = p * z + 2.0 / 17;
  p = p * z + 2.0 / 15;
  p = p * z + 2.0 / 13;
  p = p * z + 2.0 / 11;
  p = p * z + 2.0 / 9;
  p = p * z + 2.0 / 7;
  p = p * z + 2.0 / 5;
  p = p * z + 2.0 / 3;
  const double half = 0.5 * f * f;
  const double low = s * (half + p * z) + k * 1.90821492927058770002e-10;
  double v = k * 0.693147180369123816490 - ((half - low) - f);
  v = pick(x == 0.0, -__builtin_inf(), v);
  v = pick(x == __builtin_inf(), x, v);
  return pick(x < 0.0 || x != x, __builtin_nan(""), v);
}

MP_INLINE double log1p_of(double x) {
  // log(u) for the rounded u = 1 + x, plus what the rounding took away
  const double u = 1.0 + x, lost = pick(__builtin_fabs(x) > 1.0, 1.0 - (u - x), x - (u - 1.0));
  const double l = log_of(u);
  const double y = l + lost / u;
  return pick(x == __builtin_inf() || u == 0.0, l, pick(u == 1.0, x, y));
}

MP_INLINE double tanh_of(double x) {
  const double t = expm1_below(-2.0 * __builtin_fabs(x));
  return __builtin_copysign(-t / (t + 2.0), x);
}

MP_INLINE double sigmoid_of(double x) { return 1.0 / (1.0 + exp_of(-x)); }

}  // namespace millpond::backend::cpu::MP_ISA
