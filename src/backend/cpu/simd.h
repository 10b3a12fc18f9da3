// simd: one vector of floats (V) under the same names for AVX2 and AVX-512. Included only by files of
// mp_cpu_isa_sources, where MP_ISA is the namespace; everything is inlined. `All` and `Tail` are the two ways to touch
// memory: every lane, or the first n, the others neither read nor written (and zero when loaded).
#pragma once
#ifndef MP_ISA
#error "only for sources compiled by mp_cpu_isa_sources"
#endif
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#define MP_INLINE inline __attribute__((always_inline))

namespace millpond::backend::cpu::MP_ISA {

struct All {};

#if defined(__AVX512F__)
constexpr int kLanes = 16;
using V = __m512;
using I = __m512i;
using Bool = __mmask16;
struct Tail {
  __mmask16 m;
};

MP_INLINE Tail tail(int64_t n) {
  return {__mmask16(_bzhi_u32(0xffff, unsigned(n < kLanes ? n : kLanes)))};
}  // bzhi reads 8 bits of n
MP_INLINE V zero() { return _mm512_setzero_ps(); }
MP_INLINE V set(float x) { return _mm512_set1_ps(x); }
MP_INLINE I seti(int32_t x) { return _mm512_set1_epi32(x); }
MP_INLINE V load(const float* p) { return _mm512_loadu_ps(p); }
MP_INLINE V load(const float* p, All) { return _mm512_loadu_ps(p); }
MP_INLINE V load(const float* p, Tail t) { return _mm512_maskz_loadu_ps(t.m, p); }
MP_INLINE void store(float* p, V v) { _mm512_storeu_ps(p, v); }
MP_INLINE void store(float* p, V v, All) { _mm512_storeu_ps(p, v); }
MP_INLINE void store(float* p, V v, Tail t) { _mm512_mask_storeu_ps(p, t.m, v); }
MP_INLINE void stream(float* p, V v) { _mm512_stream_ps(p, v); }
MP_INLINE I loadi(const int32_t* p, All) { return _mm512_loadu_si512(p); }
MP_INLINE I loadi(const int32_t* p, Tail t) { return _mm512_maskz_loadu_epi32(t.m, p); }
MP_INLINE void storei(int32_t* p, I v, All) { _mm512_storeu_si512(p, v); }
MP_INLINE void storei(int32_t* p, I v, Tail t) { _mm512_mask_storeu_epi32(p, t.m, v); }
MP_INLINE I load_bytes(const uint8_t* p, All) { return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)p)); }
MP_INLINE I load_bytes(const uint8_t* p, Tail t) { return _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(t.m, p)); }
MP_INLINE void store_bytes(uint8_t* p, I v, All) { _mm_storeu_si128((__m128i*)p, _mm512_cvtepi32_epi8(v)); }
MP_INLINE void store_bytes(uint8_t* p, I v, Tail t) { _mm_mask_storeu_epi8(p, t.m, _mm512_cvtepi32_epi8(v)); }
MP_INLINE V keep(V v, All) { return v; }
MP_INLINE V keep(V v, Tail t) { return _mm512_maskz_mov_ps(t.m, v); }
MP_INLINE V keep_or(V v, V other, All) { return (void)other, v; }
MP_INLINE V keep_or(V v, V other, Tail t) { return _mm512_mask_mov_ps(other, t.m, v); }

MP_INLINE V add(V a, V b) { return _mm512_add_ps(a, b); }
MP_INLINE V sub(V a, V b) { return _mm512_sub_ps(a, b); }
MP_INLINE V mul(V a, V b) { return _mm512_mul_ps(a, b); }
MP_INLINE V div(V a, V b) { return _mm512_div_ps(a, b); }
MP_INLINE V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }    // a b + c
MP_INLINE V fms(V a, V b, V c) { return _mm512_fmsub_ps(a, b, c); }    // a b - c
MP_INLINE V fnma(V a, V b, V c) { return _mm512_fnmadd_ps(a, b, c); }  // c - a b
MP_INLINE V max(V a, V b) { return _mm512_max_ps(a, b); }              // a > b ? a : b, so b when either is NaN
MP_INLINE V min(V a, V b) { return _mm512_min_ps(a, b); }
MP_INLINE V sqrt(V a) { return _mm512_sqrt_ps(a); }
MP_INLINE V abs(V a) { return _mm512_abs_ps(a); }
MP_INLINE V neg(V a) { return _mm512_xor_ps(a, _mm512_set1_ps(-0.f)); }
MP_INLINE V copysign(V a, V s) {
  return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(_mm512_castps_si512(a), _mm512_castps_si512(s),
                                                       _mm512_set1_epi32(int32_t(0x80000000)), 0xd8));  // mask ? s : a
}
MP_INLINE V round(V a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
MP_INLINE V trunc(V a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
/// 1 / a within 2 ulp: 14 bits from a table and one Newton step (12 cycles against div's and sqrt's 16.5 in Adam). a =
/// 0 and infinity give NaN, so only for positive finite a.
MP_INLINE V reciprocal(V a) {
  const V q = _mm512_rcp14_ps(a);
  return fma(fnma(a, q, set(1)), q, q);
}
MP_INLINE Bool gt(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
MP_INLINE Bool ge(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }
MP_INLINE Bool lt(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
MP_INLINE Bool eq(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
MP_INLINE Bool ne(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_NEQ_UQ); }  // true for NaN
MP_INLINE Bool unordered(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q); }
MP_INLINE Bool geu(I a, I b) { return _mm512_cmp_epu32_mask(a, b, _MM_CMPINT_NLT); }  // unsigned a >= b
MP_INLINE Bool eqi(I a, I b) { return _mm512_cmpeq_epi32_mask(a, b); }
MP_INLINE Bool both(Bool a, Bool b) { return a & b; }
MP_INLINE Bool either(Bool a, Bool b) { return a | b; }
MP_INLINE bool any(Bool a) { return a != 0; }
MP_INLINE uint32_t bits(Bool a) { return a; }
MP_INLINE V select(Bool c, V a, V b) { return _mm512_mask_mov_ps(b, c, a); }
MP_INLINE V zero_unless(Bool c, V a) { return _mm512_maskz_mov_ps(c, a); }
MP_INLINE I addi(I a, I b) { return _mm512_add_epi32(a, b); }
MP_INLINE I subi(I a, I b) { return _mm512_sub_epi32(a, b); }
MP_INLINE I muli(I a, I b) { return _mm512_mullo_epi32(a, b); }
MP_INLINE I xori(I a, I b) { return _mm512_xor_si512(a, b); }
MP_INLINE I andi(I a, I b) { return _mm512_and_si512(a, b); }
template <int n>
MP_INLINE I shr(I a) {
  return _mm512_srli_epi32(a, n);
}
template <int n>
MP_INLINE I shl(I a) {
  return _mm512_slli_epi32(a, n);
}
MP_INLINE I lanes() { return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }
MP_INLINE I selecti(Bool c, I a, I b) { return _mm512_mask_mov_epi32(b, c, a); }
MP_INLINE V to_float(I a) { return _mm512_cvtepi32_ps(a); }
MP_INLINE I to_int(V a) { return _mm512_cvttps_epi32(a); }  // toward zero
MP_INLINE I as_int(V a) { return _mm512_castps_si512(a); }
MP_INLINE V as_float(I a) { return _mm512_castsi512_ps(a); }
MP_INLINE float sum(V v) { return _mm512_reduce_add_ps(v); }
MP_INLINE float largest(V v) { return _mm512_reduce_max_ps(v); }
/// a 2^n for whole n of any size, with one rounding.
MP_INLINE V scale2(V a, V n) { return _mm512_scalef_ps(a, n); }

#else
constexpr int kLanes = 8;
using V = __m256;
using I = __m256i;
using Bool = __m256;
struct Tail {
  __m256i m;
};

MP_INLINE Tail tail(int64_t n) {
  return {_mm256_cmpgt_epi32(_mm256_set1_epi32(int(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))};
}
MP_INLINE V zero() { return _mm256_setzero_ps(); }
MP_INLINE V set(float x) { return _mm256_set1_ps(x); }
MP_INLINE I seti(int32_t x) { return _mm256_set1_epi32(x); }
MP_INLINE V load(const float* p) { return _mm256_loadu_ps(p); }
MP_INLINE V load(const float* p, All) { return _mm256_loadu_ps(p); }
MP_INLINE V load(const float* p, Tail t) { return _mm256_maskload_ps(p, t.m); }
MP_INLINE void store(float* p, V v) { _mm256_storeu_ps(p, v); }
MP_INLINE void store(float* p, V v, All) { _mm256_storeu_ps(p, v); }
MP_INLINE void store(float* p, V v, Tail t) { _mm256_maskstore_ps(p, t.m, v); }
MP_INLINE void stream(float* p, V v) { _mm256_stream_ps(p, v); }
MP_INLINE I loadi(const int32_t* p, All) { return _mm256_loadu_si256((const __m256i*)p); }
MP_INLINE I loadi(const int32_t* p, Tail t) { return _mm256_maskload_epi32(p, t.m); }
MP_INLINE void storei(int32_t* p, I v, All) { _mm256_storeu_si256((__m256i*)p, v); }
MP_INLINE void storei(int32_t* p, I v, Tail t) { _mm256_maskstore_epi32(p, t.m, v); }
MP_INLINE int count(Tail t) { return __builtin_popcount(unsigned(_mm256_movemask_ps(_mm256_castsi256_ps(t.m)))); }
MP_INLINE I load_bytes(const uint8_t* p, All) { return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)p)); }
MP_INLINE I load_bytes(const uint8_t* p, Tail t) {
  alignas(8) uint8_t b[8] = {};
  for (int i = 0, n = count(t); i < n; ++i) b[i] = p[i];
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)b));
}
MP_INLINE void store_bytes(uint8_t* p, I v, All) {
  const __m128i w = _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  _mm_storel_epi64((__m128i*)p, _mm_packus_epi16(w, w));
}
MP_INLINE void store_bytes(uint8_t* p, I v, Tail t) {
  alignas(8) uint8_t b[8];
  store_bytes(b, v, All{});
  for (int i = 0, n = count(t); i < n; ++i) p[i] = b[i];
}
MP_INLINE V keep(V v, All) { return v; }
MP_INLINE V keep(V v, Tail t) { return _mm256_and_ps(v, _mm256_castsi256_ps(t.m)); }
MP_INLINE V keep_or(V v, V other, All) { return (void)other, v; }
MP_INLINE V keep_or(V v, V other, Tail t) { return _mm256_blendv_ps(other, v, _mm256_castsi256_ps(t.m)); }

MP_INLINE V add(V a, V b) { return _mm256_add_ps(a, b); }
MP_INLINE V sub(V a, V b) { return _mm256_sub_ps(a, b); }
MP_INLINE V mul(V a, V b) { return _mm256_mul_ps(a, b); }
MP_INLINE V div(V a, V b) { return _mm256_div_ps(a, b); }
MP_INLINE V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
MP_INLINE V fms(V a, V b, V c) { return _mm256_fmsub_ps(a, b, c); }
MP_INLINE V fnma(V a, V b, V c) { return _mm256_fnmadd_ps(a, b, c); }
MP_INLINE V max(V a, V b) { return _mm256_max_ps(a, b); }
MP_INLINE V min(V a, V b) { return _mm256_min_ps(a, b); }
MP_INLINE V sqrt(V a) { return _mm256_sqrt_ps(a); }
MP_INLINE V abs(V a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.f), a); }
MP_INLINE V neg(V a) { return _mm256_xor_ps(a, _mm256_set1_ps(-0.f)); }
MP_INLINE V copysign(V a, V s) {
  const V m = _mm256_set1_ps(-0.f);
  return _mm256_or_ps(_mm256_andnot_ps(m, a), _mm256_and_ps(m, s));
}
MP_INLINE V round(V a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
MP_INLINE V trunc(V a) { return _mm256_round_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
MP_INLINE V reciprocal(V a) {
  return _mm256_div_ps(_mm256_set1_ps(1), a);
}  // the 12-bit table would need two Newton steps
MP_INLINE Bool gt(V a, V b) { return _mm256_cmp_ps(a, b, _CMP_GT_OQ); }
MP_INLINE Bool ge(V a, V b) { return _mm256_cmp_ps(a, b, _CMP_GE_OQ); }
MP_INLINE Bool lt(V a, V b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
MP_INLINE Bool eq(V a, V b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
MP_INLINE Bool ne(V a, V b) { return _mm256_cmp_ps(a, b, _CMP_NEQ_UQ); }
MP_INLINE Bool unordered(V a, V b) { return _mm256_cmp_ps(a, b, _CMP_UNORD_Q); }
MP_INLINE Bool geu(I a, I b) { return _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_max_epu32(a, b), a)); }
MP_INLINE Bool eqi(I a, I b) { return _mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b)); }
MP_INLINE Bool both(Bool a, Bool b) { return _mm256_and_ps(a, b); }
MP_INLINE Bool either(Bool a, Bool b) { return _mm256_or_ps(a, b); }
MP_INLINE bool any(Bool a) { return _mm256_movemask_ps(a) != 0; }
MP_INLINE uint32_t bits(Bool a) { return uint32_t(_mm256_movemask_ps(a)); }
MP_INLINE V select(Bool c, V a, V b) { return _mm256_blendv_ps(b, a, c); }
MP_INLINE V zero_unless(Bool c, V a) { return _mm256_and_ps(c, a); }
MP_INLINE I addi(I a, I b) { return _mm256_add_epi32(a, b); }
MP_INLINE I subi(I a, I b) { return _mm256_sub_epi32(a, b); }
MP_INLINE I muli(I a, I b) { return _mm256_mullo_epi32(a, b); }
MP_INLINE I xori(I a, I b) { return _mm256_xor_si256(a, b); }
MP_INLINE I andi(I a, I b) { return _mm256_and_si256(a, b); }
template <int n>
MP_INLINE I shr(I a) {
  return _mm256_srli_epi32(a, n);
}
template <int n>
MP_INLINE I shl(I a) {
  return _mm256_slli_epi32(a, n);
}
MP_INLINE I lanes() { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
MP_INLINE I selecti(Bool c, I a, I b) {
  return _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(b), _mm256_castsi256_ps(a), c));
}
MP_INLINE V to_float(I a) { return _mm256_cvtepi32_ps(a); }
MP_INLINE I to_int(V a) { return _mm256_cvttps_epi32(a); }
MP_INLINE I as_int(V a) { return _mm256_castps_si256(a); }
MP_INLINE V as_float(I a) { return _mm256_castsi256_ps(a); }
MP_INLINE float sum(V v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
MP_INLINE float largest(V v) {
  __m128 s = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_max_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}
MP_INLINE V scale2(V a, V n) {  // in two halves, so that neither factor leaves the normal range for |n| <= 252
  const I k = _mm256_cvtps_epi32(n), h = _mm256_srai_epi32(k, 1), bias = _mm256_set1_epi32(127);
  const V p = as_float(shl<23>(addi(h, bias))), q = as_float(shl<23>(addi(subi(k, h), bias)));
  return mul(mul(a, p), q);
}
#endif

/// f(i, All{}) for whole vectors of [0, n), then f(i, Tail) for the rest.
template <class F>
MP_INLINE void each_vector(int64_t n, F&& f) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) f(i, All{});
  if (i < n) f(i, tail(n - i));
}

}  // namespace millpond::backend::cpu::MP_ISA
