// convert: a value of one dtype as a value of another: the only place that decides what becomes of a value that does
// not fit. The answers are NumPy's on x86-64:
//   to whole numbers   toward zero. What lies outside of int32 (int64 for the types of 8 bytes) and NaN give its least
//                      value, of which a narrower type keeps the low bits; uint32 and uint64 take what lies beyond the
//                      signed range first.
//   between them       the low bits stay.
//   to floating types  rounded to nearest, once; too large becomes infinity.
//   to bool            != 0; NaN is true.
#pragma once
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/half.h"
#include "millpond/tensor.h"

namespace millpond {

template <class T>
inline constexpr bool kHalf = std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>;

/// What the values of T are computed with: half types in float, whole numbers in 64 bits.
template <class T>
using Number = std::conditional_t<
    kHalf<T>, float,
    std::conditional_t<std::is_floating_point_v<T>, T, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>>;

/// Element i as a number. A bool from a stranger's file may be any byte, and reading such a bool is undefined.
template <class T>
constexpr Number<T> load(const T* p, int64_t i) {
  if constexpr (kHalf<T>)
    return to_float(p[i]);
  else if constexpr (std::is_same_v<T, bool>)
    return reinterpret_cast<const uint8_t*>(p)[i] != 0;
  else
    return Number<T>(p[i]);
}

/// Toward zero; the least value where `v` does not fit: what cvttss2si does.
template <class Int, class Float>
constexpr Int truncated(Float v) {
  constexpr auto kLow = Float(std::numeric_limits<Int>::min());
  return v >= kLow && v < -kLow ? Int(v) : std::numeric_limits<Int>::min();
}

/// A whole number as a double whose last bit says whether anything was cut off, so that rounding it further is right.
template <class Int>
constexpr double sticky(Int v) {
  const bool negative = v < 0;
  uint64_t u = negative ? 0 - uint64_t(v) : uint64_t(v);
  if (u >> 53) u = (u >> 11 | uint64_t((u & 2047) != 0)) << 11;
  return negative ? -double(u) : double(u);
}

/// `v` is a Number.
template <class To, class From>
constexpr To convert(From v) {
  static_assert(std::is_same_v<From, Number<From>>);
  if constexpr (std::is_same_v<To, From>)
    return v;
  else if constexpr (std::is_same_v<To, bool>)
    return v != From(0);
  else if constexpr (kHalf<To>) {
    const auto rounded = [](auto x) {
      if constexpr (std::is_same_v<To, bfloat16>)
        return to_bfloat16(x);
      else
        return to_float16(x);
    };
    if constexpr (std::is_floating_point_v<From>)
      return rounded(v);
    else
      return rounded(sticky(v));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if constexpr (std::is_unsigned_v<To> && sizeof(To) >= 4) {
      using Signed = std::make_signed_t<To>;
      constexpr To kHigh = To{1} << (sizeof(To) * 8 - 1);
      return v >= From(kHigh) ? To(truncated<Signed>(v - From(kHigh))) ^ kHigh : To(truncated<Signed>(v));
    } else if constexpr (sizeof(To) == 8)
      return truncated<int64_t>(v);
    else
      return To(truncated<int32_t>(v));
  } else
    return To(v);
}

template <class T, class From>
constexpr void store(T* p, int64_t i, From v) {
  p[i] = convert<T>(v);
}

/// n values. The two places are the same or do not overlap; if they are the same, so are the sizes of the types.
void convert(const void* from, DType from_type, void* to, DType to_type, int64_t n);

}  // namespace millpond
