// half: bfloat16 and float16 to and from float and double, in plain integer arithmetic: the same bits on every machine.
// Exact on the way up; on the way down round to nearest, ties to even, and never rounded twice. Too large becomes
// infinity, a NaN stays a (quiet) NaN and keeps its sign. No memory.
#pragma once
#include <bit>
#include <cstdint>

#include "millpond/tensor.h"

namespace millpond {

constexpr float to_float(bfloat16 v) { return std::bit_cast<float>(uint32_t(v.bits) << 16); }

constexpr bfloat16 to_bfloat16(float f) {
  const uint32_t u = std::bit_cast<uint32_t>(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return {uint16_t(u >> 16 | 0x40)};  // rounding could carry a NaN into infinity
  return {uint16_t((u + 0x7fffu + (u >> 16 & 1)) >> 16)};
}

constexpr float to_float(float16 v) {
  const uint32_t sign = uint32_t(v.bits & 0x8000u) << 16, exponent = v.bits >> 10 & 31, mantissa = v.bits & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13 | (mantissa ? 0x400000u : 0u));
  if (exponent) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  const float small = float(mantissa) * 0x1p-24f;  // zero or subnormal; the product is exact
  return std::bit_cast<float>(std::bit_cast<uint32_t>(small) | sign);
}

constexpr float16 to_float16(float f) {
  const uint32_t u = std::bit_cast<uint32_t>(f), a = u & 0x7fffffffu;
  const auto sign = uint16_t(u >> 16 & 0x8000);
  if (a > 0x7f800000u) return {uint16_t(sign | 0x7e00u | (a >> 13 & 0x3ffu))};
  if (a >= 0x477ff000u) return {uint16_t(sign | 0x7c00u)};  // 65520 and more: half way to the value after the largest
  if (a >= 0x38800000u) return {uint16_t(sign | (a - 0x38000000u + 0xfffu + (a >> 13 & 1)) >> 13)};
  if (a <= 0x33000000u) return {sign};  // 2^-25 and less: ties to zero
  // Subnormal: the value is m * 2^(e-150); its unit is 2^-24, so m shifted right by 126 - e.
  const uint32_t shift = 126 - (a >> 23), m = (a & 0x7fffffu) | 0x800000u;
  const uint32_t kept = m >> shift, rest = m & ((1u << shift) - 1), half = 1u << (shift - 1);
  return {uint16_t(sign | (kept + (rest > half || (rest == half && (kept & 1)))))};
}

/// The float next to `d` whose last bit is 1 unless d is a float itself ("round to odd"): rounding that once more to a
/// type of at most 22 bits gives what rounding `d` directly would have.
constexpr float round_to_odd(double d) {
  const auto f = float(d);
  if (double(f) == d || d != d) return f;
  uint32_t u = std::bit_cast<uint32_t>(f);
  const bool beyond = (double(f) < 0 ? -double(f) : double(f)) > (d < 0 ? -d : d);
  if (!(u & 1)) u += beyond ? -1u : 1u;
  return std::bit_cast<float>(u);
}
constexpr bfloat16 to_bfloat16(double d) { return to_bfloat16(round_to_odd(d)); }
constexpr float16 to_float16(double d) { return to_float16(round_to_odd(d)); }

}  // namespace millpond
