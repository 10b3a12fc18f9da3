#include "backend/cpu/attention_kernels.h"

#include <cfloat>

#include "backend/cpu/math.h"
#include "backend/cpu/tile_transpose.h"

namespace millpond::backend::cpu::MP_ISA {
namespace {

constexpr int64_t L = kLanes;

void turn(const float* x, int64_t rows, int64_t width, float scale, int64_t queries, float* y) {
  const V s = set(scale);
  auto put = [](float* p, V v) __attribute__((always_inline)) { store(p, v); };
  auto scaled = [&](V v) __attribute__((always_inline)) { return mul(v, s); };
  for (int64_t r = 0; r < queries; r += L)
    for (int64_t c = 0; c < width; c += L) {
      const int64_t down = rows - r < 0 ? 0 : rows - r < L ? rows - r : L, across = width - c < L ? width - c : L;
      turn_tile<true>(x + r * width + c, width, y + c * queries + r, queries, down, across, put, scaled);
    }
}

/// Number of queries of this vector that come before key `j`, at least 0: they do not see it.
MP_INLINE I query_numbers(const ScoreTile& t, int64_t q) { return addi(lanes(), seti(int32_t(t.first_query + q))); }
MP_INLINE V hide(V v, I query, int64_t key, float instead) {
  return select(geu(query, seti(int32_t(key))), v, set(instead));
}

template <bool kMask>
MP_INLINE bool soften_by(float* scores, const ScoreTile& t, float* largest, float* sum, float* factor) {
  bool changed = false;
  for (int64_t q = 0; q < t.queries; q += L) {
    const I query = query_numbers(t, q);
    float* const column = scores + q;
    const V before = load(largest + q);
    V top[2] = {before, before};
    int64_t k = 0;
    auto look = [&](int64_t i, V& m) __attribute__((always_inline)) {
      V v = load(column + i * t.queries);
      if (kMask) v = hide(v, query, t.first_key + i, -__builtin_inff());
      m = max(v, m);
    };
    for (; k + 2 <= t.keys; k += 2) look(k, top[0]), look(k + 1, top[1]);
    if (k < t.keys) look(k, top[0]);
    const V now = max(top[0], top[1]), f = exp(sub(before, now));
    changed |= any(gt(now, before));
    V total[2] = {zero(), zero()};
    auto take = [&](int64_t i, V& s) __attribute__((always_inline)) {
      V p = exp(sub(load(column + i * t.queries), now));
      if (kMask) p = hide(p, query, t.first_key + i, 0);
      store(column + i * t.queries, p);
      s = add(s, p);
    };
    for (k = 0; k + 2 <= t.keys; k += 2) take(k, total[0]), take(k + 1, total[1]);
    if (k < t.keys) take(k, total[0]);
    store(largest + q, now);
    store(sum + q, fma(load(sum + q), f, add(total[0], total[1])));
    store(factor + q, f);
  }
  return changed;
}
bool crosses(const ScoreTile& t) { return t.causal && t.first_key + t.keys - 1 > t.first_query; }
bool soften(float* scores, const ScoreTile& t, float* largest, float* sum, float* factor) {
  return crosses(t) ? soften_by<true>(scores, t, largest, sum, factor)
                    : soften_by<false>(scores, t, largest, sum, factor);
}

void scale_rows(float* x, int64_t rows, int64_t width, const float* factor) {
  for (int64_t r = 0; r < rows; ++r, x += width) {
    const V f = set(factor[r]);
    each_vector(width,
                [&](int64_t i, auto t) __attribute__((always_inline)) { store(x + i, mul(load(x + i, t), f), t); });
  }
}

void finish(const float* x, int64_t rows, int64_t width, const float* largest, const float* sum, float* y, float* lse) {
  each_vector(rows, [&](int64_t i, auto t) __attribute__((always_inline)) {
    store(lse + i, add(load(largest + i, t), log(load(sum + i, t))), t);
  });
  for (int64_t r = 0; r < rows; ++r, x += width, y += width) {
    const V over = set(1.f / sum[r]);
    each_vector(width,
                [&](int64_t i, auto t) __attribute__((always_inline)) { store(y + i, mul(load(x + i, t), over), t); });
  }
}

void dots(const float* x, const float* y, int64_t rows, int64_t width, float* d) {
  for (int64_t r = 0; r < rows; ++r, x += width, y += width) {
    V s = zero();
    each_vector(width,
                [&](int64_t i, auto t) __attribute__((always_inline)) { s = fma(load(x + i, t), load(y + i, t), s); });
    d[r] = sum(s);
  }
}

template <bool kMask>
MP_INLINE void gradient_by(float* scores, float* dp, const ScoreTile& t, const float* lse, const float* d,
                           float scale) {
  const V by = set(scale);
  for (int64_t q = 0; q < t.queries; q += L) {
    const I query = query_numbers(t, q);
    const V shift = load(lse + q), less = load(d + q);
    for (int64_t k = 0; k < t.keys; ++k) {
      const int64_t at = k * t.queries + q;
      V p = exp(sub(load(scores + at), shift));
      if (kMask) p = hide(p, query, t.first_key + k, 0);
      store(scores + at, p);
      store(dp + at, mul(mul(p, by), sub(load(dp + at), less)));
    }
  }
}
void gradient(float* scores, float* dp, const ScoreTile& t, const float* lse, const float* d, float scale) {
  if (crosses(t))
    gradient_by<true>(scores, dp, t, lse, d, scale);
  else
    gradient_by<false>(scores, dp, t, lse, d, scale);
}

}  // namespace

extern const AttentionKernels attention_kernels;
const AttentionKernels attention_kernels = {turn, soften, scale_rows, finish, dots, gradient};

}  // namespace millpond::backend::cpu::MP_ISA
