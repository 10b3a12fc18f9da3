// What convolutions need beside simd.h: a multiply-add from memory, and vectors that stay in registers.
#pragma once
#include "backend/cpu/simd.h"

// GCC 12 warns about the undefined operand inside its own intrinsics.
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

// Every loop over registers must be unrolled, or GCC keeps the accumulators in memory.
#define MP_UNROLL _Pragma("GCC unroll 16")

namespace millpond::backend::cpu::MP_ISA {

/// acc += a * *p. Left to itself GCC broadcasts into a register first, which takes a shuffle slot.
MP_INLINE void fma_from(V& acc, V a, const float* p) {
#ifdef __AVX512F__
  asm("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(a), "m"(*p));
#else
  acc = fma(a, _mm256_broadcast_ss(p), acc);
#endif
}

#ifdef __AVX512F__
/// Half a vector. It costs half as much, so a panel's last vector is one when it has no more channels than that.
using Half = __m256;
struct HalfTail {
  __mmask8 m;
};
MP_INLINE Half load(const float* p, HalfTail t) { return _mm256_maskz_loadu_ps(t.m, p); }
MP_INLINE void store(float* p, Half v, HalfTail t) { _mm256_mask_storeu_ps(p, t.m, v); }
MP_INLINE void fma_from(Half& acc, Half a, const float* p) {
  asm("vfmadd231ps %2%{1to8%}, %1, %0" : "+v"(acc) : "v"(a), "m"(*p));
}
#endif

/// Keeps a loaded vector in its register: left to itself GCC folds the load into every use and the load port becomes
/// the limit.
template <class T>
MP_INLINE T pinned(T v) {
  asm("" : "+v"(v));
  return v;
}

/// The first n lanes, 0 <= n; every lane from kLanes on.
MP_INLINE Tail tail_of(int64_t n) { return tail(n < kLanes ? n : kLanes); }

/// The last vector of a panel: its type, and how its channels are touched.
struct WholeLast {
  using Type = V;
  static Tail tail(int64_t n) { return tail_of(n); }
  static V zero() { return MP_ISA::zero(); }
  static V load(const float* p) { return MP_ISA::load(p); }
};
#ifdef __AVX512F__
struct HalfLast {
  using Type = Half;
  static HalfTail tail(int64_t n) { return {__mmask8(_bzhi_u32(0xff, unsigned(n)))}; }
  static Half zero() { return _mm256_setzero_ps(); }
  static Half load(const float* p) { return _mm256_loadu_ps(p); }
};
#else
using HalfLast = WholeLast;  // half of 8 lanes costs as much as all
#endif

}  // namespace millpond::backend::cpu::MP_ISA
