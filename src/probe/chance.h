// The arithmetic of sampling: random bits, ln x, 1 - exp(-x), to 1e-14. Its own, so that the probe does not bring libm
// into every process it is loaded in.
#pragma once
#include <stdint.h>

#include <bit>

namespace millpond::probe {

inline uint64_t mixed(uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// For 0 < x <= 1, not for denormal numbers.
inline double natural_log(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  int exponent = int(bits >> 52) - 1022;
  double m = std::bit_cast<double>((bits & 0x000fffffffffffffu) | 0x3fe0000000000000u);  // [0.5, 1)
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1), s2 = s * s;  // ln m = 2 atanh s
  double sum = 0;
  for (int k = 21; k >= 1; k -= 2) sum = sum * s2 + 1.0 / k;
  return 2 * s * sum + exponent * 0.69314718055994531;
}

// 1 - exp(-x) for x >= 0.
inline double hit_probability(double x) {
  if (x > 40) return 1;
  int halvings = 0;
  for (; x > 0.25; x /= 2) ++halvings;
  double p = 0;  // x (1 - x/2 (1 - x/3 (...)))
  for (int k = 12; k >= 2; --k) p = x / k * (1 - p);
  p = x * (1 - p);
  for (; halvings; --halvings) p = p * (2 - p);
  return p;
}

}  // namespace millpond::probe
