// What convolutions need beside simd.h: a multiply-add from memory, and vectors that stay in registers.
#pragma once
#include "backend/cpu/simd.h"

// GCC 12 warns about the undefined operand inside its own intrinsics.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

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

/// Keeps a loaded vector in its register: left to itself GCC folds the load into every use and the load port becomes
/// the limit.
MP_INLINE V pinned(V v) {
  asm("" : "+v"(v));
  return v;
}

/// The first n lanes, 0 <= n; every lane from kLanes on.
MP_INLINE Tail tail_of(int64_t n) { return tail(n < kLanes ? n : kLanes); }

}  // namespace millpond::backend::cpu::MP_ISA
