#include "backend/cpu/dense_kernels.h"

#include "backend/cpu/rule_simd.h"
#include "backend/cpu/tile_transpose.h"

// Loops over registers must be unrolled whole, or GCC keeps the registers in memory.
#define MP_UNROLL _Pragma("GCC unroll 32")

namespace millpond::backend::cpu::MP_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kAccumulators = 24;
MP_INLINE V sums(V (&r)[16]) {  // lane i = sum of r[i]
  MP_UNROLL
  for (int i = 0; i < 8; ++i)
    r[i] = add(_mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]), _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]));
  MP_UNROLL
  for (int i = 0; i < 4; ++i) {
    const __m512d a = _mm512_castps_pd(r[2 * i]), b = _mm512_castps_pd(r[2 * i + 1]);
    r[i] = add(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)), _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
  }
  MP_UNROLL
  for (int i = 0; i < 2; ++i)
    r[i] = add(_mm512_shuffle_f32x4(r[2 * i], r[2 * i + 1], 0x88), _mm512_shuffle_f32x4(r[2 * i], r[2 * i + 1], 0xdd));
  return add(_mm512_shuffle_f32x4(r[0], r[1], 0x88), _mm512_shuffle_f32x4(r[0], r[1], 0xdd));
}
#else
constexpr int kAccumulators = 12;
MP_INLINE V sums(V (&r)[8]) {
  MP_UNROLL
  for (int i = 0; i < 2; ++i)
    r[i] = _mm256_hadd_ps(_mm256_hadd_ps(r[4 * i], r[4 * i + 1]), _mm256_hadd_ps(r[4 * i + 2], r[4 * i + 3]));
  return add(_mm256_permute2f128_ps(r[0], r[1], 0x20), _mm256_permute2f128_ps(r[0], r[1], 0x31));
}
#endif

void turn(const float* x, int64_t ldx, float* y, int64_t ldy, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; r += kLanes)
    for (int64_t c = 0; c < cols; c += kLanes)
      turn_tile<false>(
          x + r * ldx + c, ldx, y + c * ldy + r, ldy, rows - r < kLanes ? rows - r : kLanes,
          cols - c < kLanes ? cols - c : kLanes, [](float* p, V v) { store(p, v); }, [](V v) { return v; });
}

void fetch(const float* x, int64_t count) {
  for (int64_t i = 0; i < count; i += 16) _mm_prefetch(reinterpret_cast<const char*>(x + i), _MM_HINT_T1);
}

void column_sums(const float* x, int64_t ld, int64_t rows, int64_t cols, float* out) {
  each_vector(cols, [&](int64_t i, auto m) {
    V a = zero(), b = zero(), c = zero(), d = zero();
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
      const float* p = x + r * ld + i;
      a = add(a, load(p, m)), b = add(b, load(p + ld, m)), c = add(c, load(p + 2 * ld, m)),
      d = add(d, load(p + 3 * ld, m));
    }
    for (; r < rows; ++r) a = add(a, load(x + r * ld + i, m));
    store(out + i, add(add(a, b), add(c, d)), m);
  });
}

// --- backward with few output columns ---

// Vectors of features that are worked on together, so that enough sums are under way to hide the latency of FMA.
template <int n>
constexpr int kTogether = n >= 5   ? 1
                          : n >= 3 ? 2
                          : n == 2 ? 4
                                   : 4;

template <int n>
struct Columns {
  static constexpr int kParts = (n + kLanes - 1) / kLanes;  // 2 for AVX2 with more than 8 columns

  // [features][n] into n vectors of features, and back. Stores of whole vectors run past their row into the next one,
  // which is written later, and past the end into padding.
  template <bool kAll>
  static MP_INLINE void gather(const float* w, int64_t features, float* wt, int64_t ld) {
    MP_UNROLL
    for (int part = 0; part < kParts; ++part) {
      const int from = part * kLanes, count = n - from < kLanes ? n - from : kLanes;
      const Tail across = tail(count);
      V r[kLanes];
      MP_UNROLL
      for (int i = 0; i < kLanes; ++i) r[i] = kAll || i < features ? load(w + i * n + from, across) : zero();
      tile_transpose(r);
      MP_UNROLL
      for (int j = 0; j < kLanes; ++j)
        if (j < count) {
          if constexpr (kAll)
            store(wt + (from + j) * ld, r[j]);
          else
            store(wt + (from + j) * ld, r[j], tail(features));
        }
    }
  }
  static MP_INLINE void scatter(const float* gt, float* g) {
    MP_UNROLL
    for (int part = 0; part < kParts; ++part) {
      const int from = part * kLanes, count = n - from < kLanes ? n - from : kLanes;
      V r[kLanes];
      MP_UNROLL
      for (int j = 0; j < kLanes; ++j) r[j] = j < count ? load(gt + (from + j) * kFeatureChunk) : zero();
      tile_transpose(r);
      if constexpr (kParts == 1) {
        MP_UNROLL
        for (int i = 0; i < kLanes; ++i) store(g + i * n, r[i]);
      } else {
        MP_UNROLL
        for (int i = 0; i < kLanes; ++i) store(g + i * n + from, r[i], tail(count));
      }
    }
  }
};

template <int n, bool kDx>
struct Narrow {
  // `together` vectors of features from f0, all rows.
  template <int together, class M>
  static MP_INLINE void features(const NarrowBackward& a, int64_t f0, const float* wt, float* gt, M m) {
    V g[together][n], w[together][n];
    MP_UNROLL
    for (int u = 0; u < together; ++u) MP_UNROLL
    for (int j = 0; j < n; ++j) {
      g[u][j] = zero();
      if constexpr (kDx) w[u][j] = load(wt + u * kLanes + j * kFeatureChunk);
    }
    const float* x = a.x + f0;
    const float* dz = a.dz;
    const int64_t next = (f0 + kFeatureChunk) * n;
    const float* const w_ahead = a.parameter[0];
    const float *slot0 = a.slots > 0 ? a.parameter[1] : w_ahead, *slot1 = a.slots > 1 ? a.parameter[2] : w_ahead;
    for (int64_t r = 0; r < a.rows; ++r, x += a.ldx, dz += n) {
      // Rows lie far apart, and there are more of them than the processor follows by itself: 10 GB/s without this, 30
      // with it. Into L2 (into L1 it is half as fast), and one by one between the sums: in a burst they would hold them
      // up.
      if (a.ahead) {
        MP_UNROLL
        for (int u = 0; u < together; ++u) fetch(x + kFeatureChunk + u * kLanes);
        if (r < n * together) {
          const int64_t line = next + r * kLanes;
          fetch(w_ahead + line), fetch(slot0 + line), fetch(slot1 + line);
        }
      }
      MP_UNROLL
      for (int u = 0; u < together; ++u) {
        const V v = load(x + u * kLanes, m);
        V d;
        MP_UNROLL
        for (int j = 0; j < n; ++j) {
          const V z = set(dz[j]);
          g[u][j] = fma(z, v, g[u][j]);
          if constexpr (kDx) d = j == 0 ? mul(z, w[u][0]) : fma(z, w[u][j], d);
        }
        if constexpr (kDx) {
          const int64_t at = f0 + u * kLanes;
          if (a.gate) d = zero_unless(gt_(load(a.gate + r * a.ldx + at, m)), d);
          store(a.dx + r * a.lddx + at, d, m);
        }
      }
    }
    MP_UNROLL
    for (int u = 0; u < together; ++u) MP_UNROLL
    for (int j = 0; j < n; ++j) store(gt + u * kLanes + j * kFeatureChunk, g[u][j]);
  }
  static MP_INLINE void fetch(const float* p) { _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1); }
  static MP_INLINE Bool gt_(V v) { return gt(v, zero()); }

  static void run(const NarrowBackward& a) {
    float* const gt = a.scratch;
    float* const wt = gt + n * kFeatureChunk;
    float* const g = n == 1 ? gt : wt + n * kFeatureChunk;
    constexpr int together = kTogether<n>;
    for (int64_t f0 = 0; f0 < a.features; f0 += kFeatureChunk) {
      const int64_t count = a.features - f0 < kFeatureChunk ? a.features - f0 : kFeatureChunk;
      if constexpr (kDx)
        for (int64_t k = 0; k < count; k += kLanes) {
          if (count - k >= kLanes)
            Columns<n>::template gather<true>(a.parameter[0] + (f0 + k) * n, kLanes, wt + k, kFeatureChunk);
          else
            Columns<n>::template gather<false>(a.parameter[0] + (f0 + k) * n, count - k, wt + k, kFeatureChunk);
        }
      int64_t f = 0;
      for (; f + together * kLanes <= count; f += together * kLanes)
        features<together>(a, f0 + f, wt + f, gt + f, All{});
      if constexpr (together > 1)
        for (; f + kLanes <= count; f += kLanes) features<1>(a, f0 + f, wt + f, gt + f, All{});
      if (f < count) features<1>(a, f0 + f, wt + f, gt + f, tail(count - f));
      if constexpr (n > 1)
        for (int64_t k = 0; k < count; k += kLanes) Columns<n>::scatter(gt + k, g + k * n);
      const int64_t at = f0 * n;
      a.pass(a.step, g, count * n, a.parameter, at, count * n, 1, count * n);
    }
  }
};

template <int n>
void narrow_backward(const NarrowBackward& a) {
  if (a.dx)
    Narrow<n, true>::run(a);
  else
    Narrow<n, false>::run(a);
}

// --- products with few columns ---

template <int n>
constexpr int kRows = n == 1                  ? kLanes
                      : n == 13 || n == 14    ? (kLanes == 16 ? 2 : 1)
                      : kAccumulators / n < 1 ? 1
                      : kAccumulators / n < 8 ? kAccumulators / n
                                              : 8;

// Sums for kRows<n> rows from row m; rows past the last repeat it, and are not stored.
template <int n, bool kPartial>
MP_INLINE void dots(const float* a, int64_t lda, const float* bt, int64_t ldbt, int64_t rows, int64_t inner, int64_t m,
                    float* out, bool first, bool ahead) {
  constexpr int R = kRows<n>;
  const float* p[R];
  MP_UNROLL
  for (int i = 0; i < R; ++i) p[i] = a + (m + i < rows ? m + i : rows - 1) * lda;
  V s[R * n];
  if (kPartial && !first) {
    MP_UNROLL
    for (int i = 0; i < R * n; ++i) s[i] = load(out + (m * n + i) * kLanes);
  } else {
    MP_UNROLL
    for (int i = 0; i < R * n; ++i) s[i] = zero();
  }
  each_vector(inner, [&](int64_t k, auto mask) {
    V x[R];
    MP_UNROLL
    for (int i = 0; i < R; ++i) x[i] = load(p[i] + k, mask);
    if (kPartial && ahead) {
      MP_UNROLL
      for (int i = 0; i < R; ++i) _mm_prefetch(reinterpret_cast<const char*>(p[i] + k + kNarrowChunk), _MM_HINT_T1);
    }
    MP_UNROLL
    for (int j = 0; j < n; ++j) {
      const V b = load(bt + j * ldbt + k, mask);
      MP_UNROLL
      for (int i = 0; i < R; ++i) s[i * n + j] = fma(x[i], b, s[i * n + j]);
    }
  });
  if constexpr (kPartial) {
    MP_UNROLL
    for (int i = 0; i < R * n; ++i) store(out + (m * n + i) * kLanes, s[i]);
  } else {
    const int64_t left = (rows - m) * n, count = left < R * n ? left : R * n;
    MP_UNROLL
    for (int g = 0; g < R * n; g += kLanes) {
      V r[kLanes];
      MP_UNROLL
      for (int i = 0; i < kLanes; ++i) r[i] = g + i < R * n ? s[g + i] : zero();
      const V total = sums(r);
      if (count >= g + kLanes)
        store(out + m * n + g, total);
      else if (count > g)
        store(out + m * n + g, total, tail(count - g));
    }
  }
}

template <int n>
void narrow_turn(const float* b, int64_t inner, float* bt, int64_t ld) {
  int64_t k = 0;
  for (; k + kLanes <= inner; k += kLanes) Columns<n>::template gather<true>(b + k * n, kLanes, bt + k, ld);
  if (k < inner) Columns<n>::template gather<false>(b + k * n, inner - k, bt + k, ld);
}
template <int n>
void narrow_product(const float* a, int64_t lda, const float* bt, int64_t ldbt, int64_t rows, int64_t inner, float* c) {
  for (int64_t m = 0; m < rows; m += kRows<n>) dots<n, false>(a, lda, bt, ldbt, rows, inner, m, c, true, false);
}
template <int n>
void narrow_partial(const float* a, int64_t lda, const float* bt, int64_t ldbt, int64_t rows, int64_t inner, float* acc,
                    bool first, bool ahead) {
  for (int64_t m = 0; m < rows; m += kRows<n>) dots<n, true>(a, lda, bt, ldbt, rows, inner, m, acc, first, ahead);
}
void narrow_reduce(const float* acc, int64_t count, float* c) {
  for (int64_t i = 0; i < count; i += kLanes) {
    V r[kLanes];
    MP_UNROLL
    for (int k = 0; k < kLanes; ++k) r[k] = i + k < count ? load(acc + (i + k) * kLanes) : zero();
    const V total = sums(r);
    if (count - i >= kLanes)
      store(c + i, total);
    else
      store(c + i, total, tail(count - i));
  }
}

// --- tiny sizes ---

template <Ending ending, class M>
MP_INLINE void tiny_rows(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n, const float* bias,
                         M across) {
  const V start = ending == Ending::kNone ? zero() : load(bias, across);
  auto end = [](V v) { return ending == Ending::kBiasRelu ? max(zero(), v) : v; };
  int64_t i = 0;
  for (; i + 4 <= m; i += 4) {
    const float* p = a + i * k;
    V s0 = start, s1 = start, s2 = start, s3 = start;
    for (int64_t j = 0; j < k; ++j) {
      const V v = load(b + j * n, across);
      s0 = fma(set(p[j]), v, s0), s1 = fma(set(p[k + j]), v, s1), s2 = fma(set(p[2 * k + j]), v, s2),
      s3 = fma(set(p[3 * k + j]), v, s3);
    }
    store(c + i * n, end(s0), across), store(c + (i + 1) * n, end(s1), across), store(c + (i + 2) * n, end(s2), across),
        store(c + (i + 3) * n, end(s3), across);
  }
  for (; i < m; ++i) {
    V s = start;
    for (int64_t j = 0; j < k; ++j) s = fma(set(a[i * k + j]), load(b + j * n, across), s);
    store(c + i * n, end(s), across);
  }
}

template <Ending ending>
void tiny_product(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n, const float* bias) {
  if (n == kLanes)
    tiny_rows<ending>(a, b, c, m, k, n, bias, All{});
  else
    tiny_rows<ending>(a, b, c, m, k, n, bias, tail(n));
}

template <int kind, bool nesterov, bool decay>
void small_update(const RuleStep& s, const float* x, const float* dz, int64_t rows, int64_t in, int64_t out,
                  float* const* kernel, float* const* bias) {
  const RuleOnVector<kind, nesterov, decay> rule(s);
  auto apply = [&](float* const* p, V g, int64_t at, auto m) {
    rule(g, p[0] + at, kind > 0 ? p[1] + at : nullptr, kind > 1 ? p[2] + at : nullptr, m);
  };
  each_vector(out, [&](int64_t o, auto m) {
    int64_t f = 0;
    for (; f + 4 <= in; f += 4) {
      V g0 = zero(), g1 = g0, g2 = g0, g3 = g0;
      for (int64_t r = 0; r < rows; ++r) {
        const V d = load(dz + r * out + o, m);
        const float* p = x + r * in + f;
        g0 = fma(set(p[0]), d, g0), g1 = fma(set(p[1]), d, g1), g2 = fma(set(p[2]), d, g2), g3 = fma(set(p[3]), d, g3);
      }
      apply(kernel, g0, f * out + o, m), apply(kernel, g1, (f + 1) * out + o, m),
          apply(kernel, g2, (f + 2) * out + o, m), apply(kernel, g3, (f + 3) * out + o, m);
    }
    for (; f < in; ++f) {
      V g = zero();
      for (int64_t r = 0; r < rows; ++r) g = fma(set(x[r * in + f]), load(dz + r * out + o, m), g);
      apply(kernel, g, f * out + o, m);
    }
    if (!bias) return;
    V g = zero();
    for (int64_t r = 0; r < rows; ++r) g = add(g, load(dz + r * out + o, m));
    apply(bias, g, o, m);
  });
}

template <Ending ending>
void column_product(const float* a, const float* b, float* c, int64_t m, int64_t k, const float* bias) {
  const V start = ending == Ending::kNone ? zero() : set(*bias);
  for (int64_t i = 0; i < m; i += kLanes) {
    const int64_t rows = m - i < kLanes ? m - i : kLanes;
    V s[kLanes];
    MP_UNROLL
    for (int r = 0; r < kLanes; ++r) s[r] = zero();
    each_vector(k, [&](int64_t j, auto mask) {
      const V v = load(b + j, mask);
      MP_UNROLL
      for (int r = 0; r < kLanes; ++r) s[r] = fma(load(a + (r < rows ? i + r : i) * k + j, mask), v, s[r]);
    });
    V t = add(sums(s), start);
    if (ending == Ending::kBiasRelu) t = max(zero(), t);
    if (rows == kLanes)
      store(c + i, t);
    else
      store(c + i, t, tail(rows));
  }
}

template <int kind, bool nesterov, bool decay>
void small_backward(const RuleStep& s, const float* x, const float* dz, int64_t rows, int64_t in, float* const* kernel,
                    float* const* bias, float* dx, const float* gate) {
  const RuleOnVector<kind, nesterov, decay> rule(s);
  auto apply = [&](float* const* p, V g, int64_t at, auto m) {
    rule(g, p[0] + at, kind > 0 ? p[1] + at : nullptr, kind > 1 ? p[2] + at : nullptr, m);
  };
  if (bias) {  // first: nothing waits for it
    V t = zero();
    each_vector(rows, [&](int64_t r, auto m) { t = add(t, load(dz + r, m)); });
    apply(bias, set(sum(t)), 0, tail(1));
  }
  each_vector(in, [&](int64_t f, auto m) {
    const V w = load(kernel[0] + f, m);
    V g = zero(), h = zero();
    int64_t r = 0;
    auto row = [&](int64_t i, V& total) {
      const V z = set(dz[i]);
      total = fma(z, load(x + i * in + f, m), total);
      if (!dx) return;
      V d = mul(z, w);
      if (gate) d = zero_unless(gt(load(gate + i * in + f, m), zero()), d);
      store(dx + i * in + f, d, m);
    };
    for (; r + 2 <= rows; r += 2) row(r, g), row(r + 1, h);
    if (r < rows) row(r, g);
    apply(kernel, add(g, h), f, m);
  });
}

#define MP_CHOOSE(f)                                                     \
  switch (int(kind)) {                                                   \
    case 0:                                                              \
      return decay ? f<0, false, true> : f<0, false, false>;             \
    case 1:                                                              \
      if (nesterov) return decay ? f<1, true, true> : f<1, true, false>; \
      return decay ? f<1, false, true> : f<1, false, false>;             \
    default:                                                             \
      return decay ? f<2, false, true> : f<2, false, false>;             \
  }
DenseKernels::SmallUpdate choose_small_update(WrittenRule kind, bool nesterov,
                                              bool decay){MP_CHOOSE(small_update)} DenseKernels::SmallBackward
    choose_small_backward(WrittenRule kind, bool nesterov, bool decay) {
  MP_CHOOSE(small_backward)
}
#undef MP_CHOOSE

}  // namespace

const DenseKernels dense_kernels = {
    turn,
    fetch,
    column_sums,
#define MP_EACH(f) \
  {nullptr, f<1>, f<2>, f<3>, f<4>, f<5>, f<6>, f<7>, f<8>, f<9>, f<10>, f<11>, f<12>, f<13>, f<14>, f<15>}
    MP_EACH(narrow_backward),
    MP_EACH(narrow_turn),
    MP_EACH(narrow_product),
    MP_EACH(narrow_partial),
#undef MP_EACH
    narrow_reduce,
    kLanes,
    {tiny_product<Ending::kNone>, tiny_product<Ending::kBias>, tiny_product<Ending::kBiasRelu>},
    choose_small_update,
    {column_product<Ending::kNone>, column_product<Ending::kBias>, column_product<Ending::kBiasRelu>},
    choose_small_backward,
};

}  // namespace millpond::backend::cpu::MP_ISA
