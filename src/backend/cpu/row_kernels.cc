#include "backend/cpu/row_kernels.h"

#include <cfloat>

#include "backend/cpu/math.h"

namespace millpond::backend::cpu::MP_ISA {
namespace {

constexpr int64_t L = kLanes;

/// The sum of f(i, All or Tail), vectors with zeros where the tail does not reach, in four chains.
template <class F>
MP_INLINE V sum_of(int64_t n, F&& f) {
  V a = zero(), b = zero(), c = zero(), d = zero();
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L) {
    a = add(a, f(i, All{}));
    b = add(b, f(i + L, All{}));
    c = add(c, f(i + 2 * L, All{}));
    d = add(d, f(i + 3 * L, All{}));
  }
  for (; i + L <= n; i += L) a = add(a, f(i, All{}));
  if (i < n) b = add(b, f(i, tail(n - i)));
  return add(add(a, b), add(c, d));
}

/// Two sums at once: f(i, All or Tail, a, b) adds to both.
struct Two {
  V a, b;
};
template <class F>
MP_INLINE Two two_sums(int64_t n, F&& f) {
  V a0 = zero(), b0 = a0, a1 = a0, b1 = a0, a2 = a0, b2 = a0, a3 = a0, b3 = a0;
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L) {
    f(i, All{}, a0, b0);
    f(i + L, All{}, a1, b1);
    f(i + 2 * L, All{}, a2, b2);
    f(i + 3 * L, All{}, a3, b3);
  }
  for (; i + L <= n; i += L) f(i, All{}, a0, b0);
  if (i < n) f(i, tail(n - i), a1, b1);
  return {add(add(a0, a1), add(a2, a3)), add(add(b0, b1), add(b2, b3))};
}

/// The largest number of a row, at least -FLT_MAX, so that a difference to it is never inf - inf; NaN is passed over.
MP_INLINE float largest_of(const float* x, int64_t n, float start) {
  V a = set(start), b = a, c = a, d = a;
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L) {
    a = max(load(x + i), a);
    b = max(load(x + i + L), b);
    c = max(load(x + i + 2 * L), c);
    d = max(load(x + i + 3 * L), d);
  }
  for (; i + L <= n; i += L) a = max(load(x + i), a);
  if (i < n) {
    const Tail t = tail(n - i);
    b = max(keep_or(load(x + i, t), b, t), b);
  }
  return largest(max(max(a, b), max(c, d)));
}

// A long row is read from memory once: in pieces that stay in L1, its exponentials are taken relative to the largest
// number so far, and each piece remembers which number that was.
constexpr int64_t kPieces = 64;
struct Exponentials {
  float largest, sum;  // of the whole row
  int64_t piece;       // length of a piece
  int64_t pieces;
  float shift[kPieces];  // piece p holds exp(x - shift[p])
};

template <bool kStore>
MP_INLINE void exponentials(const float* x, float* y, int64_t n, Exponentials& e) {
  const int64_t even = (n + kPieces - 1) / kPieces;
  e.piece = even <= 2048 ? 2048 : (even + L - 1) / L * L;
  e.pieces = 0;
  float top = -FLT_MAX;
  V total = zero();
  for (int64_t begin = 0; begin < n; begin += e.piece) {
    const int64_t m = n - begin < e.piece ? n - begin : e.piece;
    const float* from = x + begin;
    [[maybe_unused]] float* to = kStore ? y + begin : nullptr;
    const float now = largest_of(from, m, top);
    if (now > top) total = mul(total, exp(set(top - now)));
    top = now;
    e.shift[e.pieces++] = top;
    const V shift = set(top);
    const V s = sum_of(m, [&](int64_t i, auto t) __attribute__((always_inline)) {
      const V v = keep(exp(sub(load(from + i, t), shift)), t);
      if constexpr (kStore) store(to + i, v, t);
      return v;
    });
    total = add(total, s);
  }
  e.largest = top;
  e.sum = sum(total);
}

/// shift[p] becomes exp(shift[p] - largest) / sum, what a piece has to be multiplied with.
MP_INLINE void finish(Exponentials& e) {
  const V top = set(e.largest), whole = set(e.sum);
  each_vector(e.pieces, [&](int64_t i, auto t) __attribute__((always_inline)) {
    store(e.shift + i, div(exp(sub(load(e.shift + i, t), top)), whole), t);
  });
}

/// The n <= kLanes first lanes and not a byte more: a load behind a masked store waits until that has left the core,
/// for all the bytes that the mask might have covered. Rows of ten classes written over their own logits were three
/// times as slow.
MP_INLINE void store_exactly(float* p, V v, int64_t n) {
#if defined(__AVX512F__)
  if (n == L) return store(p, v);
  __m256 y = _mm512_castps512_ps256(v);
  if (n & 8) {
    _mm256_storeu_ps(p, y);
    p += 8;
    y = _mm512_extractf32x8_ps(v, 1);
  }
#else
  if (n == L) return store(p, v);
  const __m256 y = v;
#endif
  __m128 x = _mm256_castps256_ps128(y);
  if (n & 4) {
    _mm_storeu_ps(p, x);
    p += 4;
    x = _mm256_extractf128_ps(y, 1);
  }
  if (n & 2) {
    _mm_storel_pi(reinterpret_cast<__m64*>(p), x);
    p += 2;
    x = _mm_movehl_ps(x, x);
  }
  if (n & 1) _mm_store_ss(p, x);
}

/// The sums of eight vectors.
MP_INLINE __m256 eight_sums(const V (&v)[8]) {
  __m256 y[8];
  for (int i = 0; i < 8; ++i) {
#if defined(__AVX512F__)
    y[i] = _mm256_add_ps(_mm512_castps512_ps256(v[i]), _mm512_extractf32x8_ps(v[i], 1));
#else
    y[i] = v[i];
#endif
  }
  const __m256 a = _mm256_hadd_ps(_mm256_hadd_ps(y[0], y[1]), _mm256_hadd_ps(y[2], y[3])),
               b = _mm256_hadd_ps(_mm256_hadd_ps(y[4], y[5]), _mm256_hadd_ps(y[6], y[7]));
  return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}

MP_INLINE V widened(__m256 v) {
#if defined(__AVX512F__)
  return _mm512_castps256_ps512(v);
#else
  return v;
#endif
}

/// Labels `first` and up, n <= 8 of them, brought into [0, cols); zeros after them.
MP_INLINE __m256i eight_labels(Labels labels, int64_t first, int64_t n, int64_t cols) {
  const __m256i top = _mm256_set1_epi32(int32_t(cols - 1));
  if (labels.type == Stored::kInt32) {
    const __m256i some = _mm256_cmpgt_epi32(_mm256_set1_epi32(int32_t(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    const __m256i k = _mm256_maskload_epi32(static_cast<const int32_t*>(labels.first) + first, some);
    return _mm256_min_epi32(_mm256_max_epi32(k, _mm256_setzero_si256()), top);
  }
  alignas(32) int32_t k[8] = {};
  for (int64_t i = 0; i < n; ++i) k[i] = int32_t(label_below(labels, first + i, cols));
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(k));
}

// Eight short rows (of at most K vectors) at once, in registers. They share one shift, the largest of all, which saves
// seven searches across lanes; where a row's largest is so far below that its sum is small (or something is not a
// number), each row gets its own. Past its end a row is -inf, and its exponential 0.
template <int K>
struct Eight {
  V v[8][K];
  alignas(32) float shift[8];
  __m256 total;

  /// Row r of `n` at x + r * cols; past the last, the last again. Afterwards v = exp(x - shift).
  MP_INLINE void read(const float* x, int64_t n, int64_t cols, Tail t) {
    V m[8];
    const float* from = x;
    for (int r = 0; r < 8; from += ++r < n ? cols : 0) m[r] = row(from, v[r], t);
    for (int step = 4; step; step /= 2)
      for (int r = 0; r < step; ++r) m[r] = max(m[r], m[r + step]);
    // a NaN may hide a number here, but then it is in the sums too
    const float top = largest(m[0]);
    _mm256_store_ps(shift, _mm256_set1_ps(top));
    V s[8];
    for (int r = 0; r < 8; ++r) s[r] = exponentials(v[r], top);
    total = eight_sums(s);
    if (_mm256_movemask_ps(_mm256_cmp_ps(total, _mm256_set1_ps(1e-6f), _CMP_NGE_UQ)) == 0) return;
    Eight other;  // only this one has an address: v stays in registers
    other.read_each(x, n, cols, t);
    *this = other;
  }
  MP_INLINE void write(float* y, int64_t n, int64_t cols) const {
    for (int r = 0; r < 8 && r < n; ++r)
      for (int i = 0; i < K; ++i) {
        if (i < K - 1)
          store(y + r * cols + i * L, v[r][i]);
        else
          store_exactly(y + r * cols + i * L, v[r][i], cols - i * L);
      }
  }

 private:
  /// Each row with its own shift. Rare, and out of the way of the code that is not.
  __attribute__((noinline, cold)) void read_each(const float* from, int64_t n, int64_t cols, Tail t) {
    V s[8];
    for (int r = 0; r < 8; from += ++r < n ? cols : 0) {
      row(from, v[r], t);
      shift[r] = largest_of(from, cols, -FLT_MAX);
      s[r] = exponentials(v[r], shift[r]);
    }
    total = eight_sums(s);
  }
  static MP_INLINE V row(const float* x, V (&to)[K], Tail t) {
    to[K - 1] = keep_or(load(x + (K - 1) * L, t), set(-__builtin_inff()), t);
    V m = to[K - 1];
    for (int i = 0; i < K - 1; ++i) {
      to[i] = load(x + i * L);
      m = max(m, to[i]);
    }
    return m;
  }
  static MP_INLINE V exponentials(V (&of)[K], float top) {
    V s = zero();
    for (int i = 0; i < K; ++i) {
      of[i] = exp(sub(of[i], set(top)));
      s = i ? add(s, of[i]) : of[i];
    }
    return s;
  }
};

template <int K>
void softmax_few(const float* x, float* y, int64_t rows, int64_t cols) {
  const Tail t = tail(cols - (K - 1) * L);
  for (int64_t r = 0; r < rows; r += 8, x += 8 * cols, y += 8 * cols) {
    Eight<K> e;
    e.read(x, rows - r, cols, t);
    alignas(32) float over[8];
    _mm256_store_ps(over, _mm256_div_ps(_mm256_set1_ps(1), e.total));
    for (int i = 0; i < 8; ++i)
      for (int k = 0; k < K; ++k) e.v[i][k] = mul(e.v[i][k], set(over[i]));
    e.write(y, rows - r, cols);
  }
}

void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  if (cols <= L) return softmax_few<1>(x, y, rows, cols);
  if (cols <= 2 * L) return softmax_few<2>(x, y, rows, cols);
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    Exponentials e;
    exponentials<true>(x, y, cols, e);
    finish(e);
    for (int64_t p = 0; p < e.pieces; ++p) {
      float* const to = y + p * e.piece;
      const int64_t left = cols - p * e.piece;
      const V scale = set(e.shift[p]);
      each_vector(left < e.piece ? left : e.piece, [&](int64_t i, auto t) __attribute__((always_inline)) {
        store(to + i, mul(load(to + i, t), scale), t);
      });
    }
  }
}

template <int K>
void cross_entropy_few(const float* z, Labels labels, float* loss, int64_t rows, int64_t cols) {
  const Tail t = tail(cols - (K - 1) * L);
  for (int64_t r = 0; r < rows; r += 8, z += 8 * cols) {
    const int64_t n = rows - r < 8 ? rows - r : 8;
    const __m256i row = _mm256_min_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(int32_t(n - 1)));
    const __m256i at =
        _mm256_add_epi32(_mm256_mullo_epi32(row, _mm256_set1_epi32(int32_t(cols))), eight_labels(labels, r, n, cols));
    const __m256 logit = _mm256_i32gather_ps(z, at, 4);
    Eight<K> e;
    e.read(z, n, cols, t);
    const __m256 shift = _mm256_sub_ps(_mm256_load_ps(e.shift), logit);
    store(loss + r, add(widened(shift), log(widened(e.total))), tail(n));
  }
}

void cross_entropy(const float* z, Labels labels, float* loss, int64_t rows, int64_t cols) {
  if (cols <= L) return cross_entropy_few<1>(z, labels, loss, rows, cols);
  if (cols <= 2 * L) return cross_entropy_few<2>(z, labels, loss, rows, cols);
  for (int64_t r = 0; r < rows; r += L) {
    alignas(64) float shift[L] = {}, total[L] = {};
    const int64_t n = rows - r < L ? rows - r : L;
    for (int64_t i = 0; i < n; ++i, z += cols) {
      Exponentials e;
      exponentials<false>(z, nullptr, cols, e);
      shift[i] = e.largest - z[label_below(labels, r + i, cols)];
      total[i] = e.sum;
    }
    store(loss + r, add(load(shift), log(load(total))), tail(n));
  }
}

template <int K>
void cross_entropy_backward_few(const float* z, Labels labels, const float* dloss, float* dz, int64_t rows,
                                int64_t cols) {
  const Tail t = tail(cols - (K - 1) * L);
  for (int64_t r = 0; r < rows; r += 8, z += 8 * cols, dz += 8 * cols) {
    const int64_t n = rows - r < 8 ? rows - r : 8;
    Eight<K> e;
    e.read(z, n, cols, t);
    alignas(32) float over[8];
    alignas(32) int32_t label_of[8];
    _mm256_store_ps(over, _mm256_div_ps(_mm256_set1_ps(1), e.total));
    _mm256_store_si256(reinterpret_cast<__m256i*>(label_of), eight_labels(labels, r, n, cols));
    for (int64_t i = 0; i < n; ++i) {
      const I label = seti(label_of[i]);
      for (int k = 0; k < K; ++k) {
        const V one = zero_unless(eqi(addi(lanes(), seti(int32_t(k * L))), label), set(1.f));
        e.v[i][k] = mul(fms(e.v[i][k], set(over[i]), one), set(dloss[r + i]));
      }
    }
    e.write(dz, n, cols);
  }
}

void cross_entropy_backward(const float* z, Labels labels, const float* dloss, float* dz, int64_t rows, int64_t cols) {
  if (cols <= L) return cross_entropy_backward_few<1>(z, labels, dloss, dz, rows, cols);
  if (cols <= 2 * L) return cross_entropy_backward_few<2>(z, labels, dloss, dz, rows, cols);
  for (int64_t r = 0; r < rows; ++r, z += cols, dz += cols) {
    Exponentials e;
    exponentials<true>(z, dz, cols, e);
    finish(e);
    const int64_t label = label_below(labels, r, cols);
    const float hit = (dz[label] * e.shift[label / e.piece] - 1.f) * dloss[r];
    for (int64_t p = 0; p < e.pieces; ++p) {
      float* const to = dz + p * e.piece;
      const int64_t left = cols - p * e.piece;
      const V scale = set(e.shift[p] * dloss[r]);
      each_vector(left < e.piece ? left : e.piece, [&](int64_t i, auto t) __attribute__((always_inline)) {
        store(to + i, mul(load(to + i, t), scale), t);
      });
    }
    dz[label] = hit;
  }
}

void layer_norm(const float* x, const float* gamma, const float* beta, float* y, float* mean, float* rstd, int64_t rows,
                int64_t cols, float epsilon) {
  const float over = 1.f / float(cols);
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    // The mean is held as m + rest: with a mean far larger than the spread, a float would move every result.
    const float m =
        sum(sum_of(cols, [&](int64_t i, auto t) __attribute__((always_inline)) { return load(x + i, t); })) * over;
    const V middle = set(m);
    const Two d1 = two_sums(cols, [&](int64_t i, auto t, V& a, V& b) __attribute__((always_inline)) {
      const V d = keep(sub(load(x + i, t), middle), t);
      a = add(a, d);
      b = fma(d, d, b);
    });
    const float rest = sum(d1.a) * over, variance = sum(d1.b) * over - rest * rest;
    const float s = 1.f / __builtin_sqrtf((variance < 0 ? 0.f : variance) + epsilon);
    mean[r] = m + rest;
    rstd[r] = s;
    const V scale = set(s), lost = set(rest);
    each_vector(cols, [&](int64_t i, auto t) __attribute__((always_inline)) {
      const V h = mul(sub(sub(load(x + i, t), middle), lost), scale);
      store(y + i, fma(h, load(gamma + i, t), load(beta + i, t)), t);
    });
  }
}

void layer_norm_backward(const float* x, const float* gamma, const float* mean, const float* rstd, const float* dy,
                         float* dx, float* dgamma, float* dbeta, int64_t rows, int64_t cols) {
  each_vector(cols, [&](int64_t i, auto t) __attribute__((always_inline)) {
    store(dgamma + i, zero(), t);
    store(dbeta + i, zero(), t);
  });
  const float over = 1.f / float(cols);
  for (int64_t r = 0; r < rows; ++r, x += cols, dy += cols, dx += cols) {
    const V m = set(mean[r]), s = set(rstd[r]);
    const Two g1 = two_sums(cols, [&](int64_t i, auto t, V& a, V& b) __attribute__((always_inline)) {
      const V d = load(dy + i, t), h = mul(sub(load(x + i, t), m), s), g = mul(d, load(gamma + i, t));
      store(dgamma + i, fma(d, h, load(dgamma + i, t)), t);
      store(dbeta + i, add(d, load(dbeta + i, t)), t);
      a = add(a, g);
      b = fma(g, h, b);
    });
    const V mean_g = set(sum(g1.a) * over), mean_gh = set(sum(g1.b) * over);
    each_vector(cols, [&](int64_t i, auto t) __attribute__((always_inline)) {
      const V h = mul(sub(load(x + i, t), m), s), g = mul(load(dy + i, t), load(gamma + i, t));
      store(dx + i, mul(s, fnma(h, mean_gh, sub(g, mean_g))), t);
    });
  }
}

void argmax(const float* x, int32_t* index, int64_t rows, int64_t cols) {
  const V lowest = set(-__builtin_inff());
  for (int64_t r = 0; r < rows; ++r, x += cols) {
    if (x[0] != x[0]) {  // nothing is greater than NaN
      index[r] = 0;
      continue;
    }
    V best = lowest;
    I where = lanes(), at = lanes();
    const I step = seti(int32_t(L));
    each_vector(cols, [&](int64_t i, auto t) __attribute__((always_inline)) {
      const V v = keep_or(load(x + i, t), lowest, t);
      const Bool higher = gt(v, best);
      best = select(higher, v, best);
      where = selecti(higher, at, where);
      at = addi(at, step);
    });
    alignas(64) int32_t lane[L];
    storei(lane, where, All{});
    uint32_t ties = bits(eq(best, set(largest(best))));
    int32_t first = INT32_MAX;
    for (; ties; ties &= ties - 1) {
      const int32_t k = lane[__builtin_ctz(ties)];
      first = k < first ? k : first;
    }
    index[r] = first;
  }
}

}  // namespace

extern const RowKernels row_kernels;
const RowKernels row_kernels = {softmax,    cross_entropy,       cross_entropy_backward,
                                layer_norm, layer_norm_backward, argmax};

}  // namespace millpond::backend::cpu::MP_ISA
