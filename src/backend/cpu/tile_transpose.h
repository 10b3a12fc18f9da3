// tile_transpose: a square of kLanes x kLanes floats turned in registers; for files compiled for each instruction set.
#pragma once
#include "backend/cpu/simd.h"

namespace millpond::backend::cpu::MP_ISA {

#if defined(__AVX512F__)
MP_INLINE void tile_transpose(V (&r)[16]) {
  // pairs, then fours within 128 bits, then the 128-bit parts
  __m512d t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_castps_pd(_mm512_unpacklo_ps(r[i], r[i + 1]));
    t[i + 1] = _mm512_castps_pd(_mm512_unpackhi_ps(r[i], r[i + 1]));
  }
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(t[i], t[i + 2]));
    r[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(t[i], t[i + 2]));
    r[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(t[i + 1], t[i + 3]));
    r[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(t[i + 1], t[i + 3]));
  }
  for (int j = 0; j < 4; ++j) {
    const V a = _mm512_shuffle_f32x4(r[j], r[j + 4], 0x88), b = _mm512_shuffle_f32x4(r[j], r[j + 4], 0xdd);
    const V c = _mm512_shuffle_f32x4(r[j + 8], r[j + 12], 0x88), d = _mm512_shuffle_f32x4(r[j + 8], r[j + 12], 0xdd);
    r[j] = _mm512_shuffle_f32x4(a, c, 0x88);
    r[j + 4] = _mm512_shuffle_f32x4(b, d, 0x88);
    r[j + 8] = _mm512_shuffle_f32x4(a, c, 0xdd);
    r[j + 12] = _mm512_shuffle_f32x4(b, d, 0xdd);
  }
}
#else
MP_INLINE void tile_transpose(V (&r)[8]) {
  __m256d t[8];
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_castps_pd(_mm256_unpacklo_ps(r[i], r[i + 1]));
    t[i + 1] = _mm256_castps_pd(_mm256_unpackhi_ps(r[i], r[i + 1]));
  }
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_castpd_ps(_mm256_unpacklo_pd(t[i], t[i + 2]));
    r[i + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(t[i], t[i + 2]));
    r[i + 2] = _mm256_castpd_ps(_mm256_unpacklo_pd(t[i + 1], t[i + 3]));
    r[i + 3] = _mm256_castpd_ps(_mm256_unpackhi_pd(t[i + 1], t[i + 3]));
  }
  for (int j = 0; j < 4; ++j) {
    const V a = _mm256_permute2f128_ps(r[j], r[j + 4], 0x20), b = _mm256_permute2f128_ps(r[j], r[j + 4], 0x31);
    r[j] = a;
    r[j + 4] = b;
  }
}
#endif

/// y[j * y_step + i] = f(x[i * x_step + j]) for i < rows <= kLanes, j < cols <= kLanes. Lanes past `rows` are zero:
/// with kPad they are stored too.
template <bool kPad, class Put, class F>
MP_INLINE void turn_tile(const float* x, int64_t x_step, float* y, int64_t y_step, int64_t rows, int64_t cols,
                         Put&& put, F&& f) {
  V r[kLanes];
  if (rows == kLanes && cols == kLanes) {
    for (int i = 0; i < kLanes; ++i) r[i] = f(load(x + i * x_step));
    tile_transpose(r);
    for (int j = 0; j < kLanes; ++j) put(y + j * y_step, r[j]);
    return;
  }
  const Tail across = tail(cols), down = tail(rows);
  for (int i = 0; i < kLanes; ++i) r[i] = i < rows ? f(load(x + i * x_step, across)) : zero();
  tile_transpose(r);
  for (int j = 0; j < kLanes; ++j)
    if (j < cols) {
      if (kPad)
        store(y + j * y_step, r[j]);
      else
        store(y + j * y_step, r[j], down);
    }
}

}  // namespace millpond::backend::cpu::MP_ISA
