// From memory to lanes and back, an element at a time: loops over these become vectors. For files that are compiled for
// each instruction set.
#pragma once
#include "backend/cpu/simd.h"
#include "backend/cpu/stored.h"

// A loop whose results lie where its operands do or nowhere near them.
#if defined(__clang__)
#define MP_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define MP_IVDEP _Pragma("GCC ivdep")
#endif

namespace millpond::backend::cpu::MP_ISA {

struct BFloat {
  uint16_t bits;
};
struct Half {
  uint16_t bits;
};
struct Truth {
  uint8_t byte;
};

template <class T>
struct LaneOf {
  using Type = T;
};
template <>
struct LaneOf<BFloat> {
  using Type = float;
};
template <>
struct LaneOf<Half> {
  using Type = float;
};
template <>
struct LaneOf<Truth> {
  using Type = float;
};
template <>
struct LaneOf<int8_t> {
  using Type = int32_t;
};
template <>
struct LaneOf<int16_t> {
  using Type = int32_t;
};
template <>
struct LaneOf<uint8_t> {
  using Type = int32_t;
};
template <>
struct LaneOf<uint16_t> {
  using Type = int32_t;
};
template <>
struct LaneOf<uint32_t> {
  using Type = int64_t;
};
template <class T>
using Lane = typename LaneOf<T>::Type;

template <class T>
MP_INLINE Lane<T> widened(T v) {
  return Lane<T>(v);
}
MP_INLINE float widened(BFloat v) { return __builtin_bit_cast(float, uint32_t(v.bits) << 16); }
MP_INLINE float widened(Half v) { return _cvtsh_ss(v.bits); }
MP_INLINE float widened(Truth v) { return v.byte ? 1.f : 0.f; }

template <class T>
MP_INLINE T narrowed(Lane<T> v) {
  return T(v);
}
template <>
MP_INLINE BFloat narrowed<BFloat>(float v) {
  const uint32_t u = __builtin_bit_cast(uint32_t, v);
  const uint32_t rounded = (u + 0x7fffu + (u >> 16 & 1)) >> 16, nan = u >> 16 | 0x40;
  return {uint16_t((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded)};
}
template <>
MP_INLINE Half narrowed<Half>(float v) {
  return {_cvtss_sh(v, _MM_FROUND_TO_NEAREST_INT)};
}
template <>
MP_INLINE Truth narrowed<Truth>(float v) {
  return {uint8_t(v != 0)};
}

template <class T>
MP_INLINE void widen(const T* from, Lane<T>* to, int64_t n) {
  MP_IVDEP for (int64_t i = 0; i < n; ++i) to[i] = widened(from[i]);
}
template <class T>
MP_INLINE void narrow(const Lane<T>* from, T* to, int64_t n) {
  MP_IVDEP for (int64_t i = 0; i < n; ++i) to[i] = narrowed<T>(from[i]);
}
// The compiler has no vectors of halves of its own.
template <>
MP_INLINE void widen<Half>(const Half* from, float* to, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  for (; i < n; ++i) to[i] = widened(from[i]);
}
template <>
MP_INLINE void narrow<Half>(const float* from, Half* to, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  for (; i < n; ++i) to[i] = narrowed<Half>(from[i]);
}

}  // namespace millpond::backend::cpu::MP_ISA
