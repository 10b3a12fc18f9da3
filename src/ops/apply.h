// apply: the formulas of ops/functions.inc as code, for float, double, int64_t and uint64_t. Narrower whole numbers are
// computed in 64 bits and keep their low bits: that gives every function here the value it has in the narrow type.
#pragma once
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "ops/expression.h"

namespace millpond::ops {

namespace arithmetic {
// Signed numbers wrap as unsigned ones do: their overflow would be undefined.
template <class T>
constexpr T plus(T x, T y) {
  if constexpr (std::is_integral_v<T>)
    return T(uint64_t(x) + uint64_t(y));
  else
    return x + y;
}
template <class T>
constexpr T minus(T x, T y) {
  if constexpr (std::is_integral_v<T>)
    return T(uint64_t(x) - uint64_t(y));
  else
    return x - y;
}
template <class T>
constexpr T minus(T x) {
  if constexpr (std::is_integral_v<T>)
    return minus(T(0), x);
  else
    return -x;
}
template <class T>
constexpr T times(T x, T y) {
  if constexpr (std::is_integral_v<T>)
    return T(uint64_t(x) * uint64_t(y));
  else
    return x * y;
}
template <class T>
T magnitude(T x) {
  if constexpr (std::is_integral_v<T>)
    return x < T(0) ? minus(x) : x;
  else
    return std::abs(x);
}

template <class T>
T floor_remainder(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    const T r = std::fmod(x, y);
    if (r == T(0)) return y == T(0) ? r : std::copysign(T(0), y);
    return (r < T(0)) != (y < T(0)) ? r + y : r;
  } else {
    if (y == T(0) || y == T(-1)) return y == T(0) || std::is_signed_v<T> ? T(0) : x % y;
    const T r = x % y;
    return r != T(0) && (r < T(0)) != (y < T(0)) ? r + y : r;
  }
}
template <class T>
T floor_quotient(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    // NumPy's: the exact multiple of y is divided, so that the quotient is whole but for rounding, which floor undoes
    if (y == T(0)) return x / y;
    T r = std::fmod(x, y), q = (x - r) / y;
    if (r != T(0) && (r < T(0)) != (y < T(0))) q -= T(1);
    if (q == T(0)) return std::copysign(T(0), x / y);
    const T whole = std::floor(q);
    return q - whole > T(0.5) ? whole + T(1) : whole;
  } else {
    if (y == T(0)) return T(0);
    if (std::is_signed_v<T> && y == T(-1)) return minus(x);
    const T q = x / y;
    return std::is_signed_v<T> && x % y != T(0) && (x < T(0)) != (y < T(0)) ? q - T(1) : q;
  }
}

template <class T>
T shifted_left(T x, T y) {
  return uint64_t(y) < 64 ? T(uint64_t(x) << uint64_t(y)) : T(0);
}
template <class T>
T shifted_right(T x, T y) {
  if constexpr (std::is_floating_point_v<T>)
    return T(0);
  else
    return uint64_t(y) < 64 ? T(x >> uint64_t(y)) : x < T(0) ? T(-1) : T(0);
}
}  // namespace arithmetic

/// f(x) or f(x, y); a comparison gives 1 or 0.
template <class T>
T apply(Function f, T x, T y = T(0)) {
  using namespace arithmetic;
  switch (f) {
#define MP_CASE(name, formula) \
  case Function::k_##name:     \
    return T(formula);
#define MP_UNARY MP_CASE
#define MP_BINARY MP_CASE
#define MP_COMPARE MP_CASE
#define MP_BITS(name, formula)           \
  case Function::k_##name:               \
    if constexpr (std::is_integral_v<T>) \
      return T(formula);                 \
    else                                 \
      return T(0);
#include "ops/functions.inc"
#undef MP_CASE
    default:
      return T(0);
  }
}

}  // namespace millpond::ops
