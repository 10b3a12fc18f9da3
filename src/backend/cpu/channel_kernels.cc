#include "backend/cpu/channel_kernels.h"

#include "backend/cpu/columns.h"

namespace millpond::backend::cpu::MP_ISA {
namespace {

struct Add {
  MP_INLINE V operator()(V a, V b) const { return add(a, b); }
};

void moments(const float* x, Folded p, float* pivot, float* first, float* second) {
  // Four rows of the block without the largest and the smallest, so that one stray value does not carry the pivot away.
  const int64_t looks = p.rows < 4 ? 1 : 4;
  each_vector(p.cols, [&](int64_t i, auto t) __attribute__((always_inline)) {
    V v = load(x + i, t), low = v, high = v, all = v;
    for (int64_t k = 1; k < looks; ++k) {
      v = load(x + k * (p.rows / looks) * p.stride + i, t);
      low = min(low, v), high = max(high, v), all = add(all, v);
    }
    store(pivot + i, looks == 1 ? v : mul(sub(sub(all, low), high), set(0.5f)), t);
  });
  const int64_t ahead = look_ahead(p);
  const float* const constant[1] = {pivot};
  float* const out[2] = {first, second};
  column_sums<1, 2, false>(
      p, constant, out, 0,
      [&](int64_t at, auto t, V(&c)[1], V(&s)[2]) __attribute__((always_inline)) {
        prefetch(x + at, ahead);
        const V d = sub(load(x + at, t), c[0]);
        s[0] = add(s[0], d);
        s[1] = fma(d, d, s[1]);
      },
      Add());
}

constexpr int64_t kStrip = 64;

void combine_moments(const float* moments, int64_t step, int64_t ld, int64_t count, int64_t rows, int64_t last_rows,
                     int64_t cols, const float* gamma, const float* beta, double epsilon, float* mean, float* variance,
                     float* scale, float* shift) {
  for (int64_t begin = 0; begin < cols; begin += kStrip) {
    const int64_t n = cols - begin < kStrip ? cols - begin : kStrip;
    double middle[kStrip] = {}, square[kStrip] = {};
    double seen = 0;
    for (int64_t b = 0; b < count; ++b) {
      const float *pivot = moments + b * step + begin, *first = pivot + ld, *second = first + ld;
      const double here = double(b == count - 1 ? last_rows : rows), share = here / (seen + here), cross = seen * share;
      for (int64_t c = 0; c < n; ++c) {
        const double s = double(first[c]), offset = s / here, apart = double(pivot[c]) + offset - middle[c];
        square[c] += double(second[c]) - s * offset + apart * apart * cross;
        middle[c] += apart * share;
      }
      seen += here;
    }
    for (int64_t c = 0; c < n; ++c) {
      const double v = square[c] / seen, var = v < 0 ? 0 : v;
      const double s = double(gamma[begin + c]) / __builtin_sqrt(var + epsilon);
      const float m = float(middle[c]);
      mean[begin + c] = m;
      variance[begin + c] = float(var);
      scale[begin + c] = float(s);
      shift[begin + c] = float(double(beta[begin + c]) - (middle[c] - double(m)) * s);
    }
  }
}

/// Whole vectors of every row lie on vector boundaries.
MP_INLINE bool on_boundaries(const float* p, const Folded& f) {
  const int64_t row = f.fold == 1 ? f.stride : f.fold * f.cols;
  return (reinterpret_cast<uintptr_t>(p) % sizeof(V)) == 0 && row % kLanes == 0;
}

template <bool kStream>
MP_INLINE void put(float* p, V v, All) {
  kStream ? stream(p, v) : store(p, v);
}
template <bool kStream>
MP_INLINE void put(float* p, V v, Tail t) {
  store(p, v, t);
}

template <bool kStream>
MP_INLINE void normalise_by(const float* x, const Folded& p, const float* mean, const float* scale, const float* shift,
                            float* y) {
  const int64_t ahead = look_ahead(p);
  const float* const constant[3] = {mean, scale, shift};
  column_map<3>(p, constant, [&](int64_t at, auto t, V(&c)[3]) __attribute__((always_inline)) {
    prefetch(x + at, ahead);
    put<kStream>(y + at, fma(sub(load(x + at, t), c[0]), c[1], c[2]), t);
  });
  if (kStream) _mm_sfence();
}
void normalise(const float* x, Folded p, const float* mean, const float* scale, const float* shift, float* y,
               bool stream) {
  if (stream && on_boundaries(y, p))
    normalise_by<true>(x, p, mean, scale, shift, y);
  else
    normalise_by<false>(x, p, mean, scale, shift, y);
}

void gradient_sums(const float* x, const float* dy, Folded p, const float* mean, float* first, float* second) {
  const int64_t ahead = look_ahead(p);
  const float* const constant[1] = {mean};
  float* const out[2] = {first, second};
  column_sums<1, 2, false>(
      p, constant, out, 0,
      [&](int64_t at, auto t, V(&c)[1], V(&s)[2]) __attribute__((always_inline)) {
        prefetch(x + at, ahead);
        prefetch(dy + at, ahead);
        const V d = load(dy + at, t);
        s[0] = add(s[0], d);
        s[1] = fma(d, sub(load(x + at, t), c[0]), s[1]);
      },
      Add());
}

void combine_gradients(const float* sums, int64_t step, int64_t ld, int64_t count, int64_t rows, int64_t cols,
                       const float* gamma, const float* variance, double epsilon, float* dgamma, float* dbeta,
                       float* by_dy, float* by_x, float* shift) {
  for (int64_t begin = 0; begin < cols; begin += kStrip) {
    const int64_t n = cols - begin < kStrip ? cols - begin : kStrip;
    double first[kStrip] = {}, second[kStrip] = {};
    for (int64_t b = 0; b < count; ++b) {
      const float* s = sums + b * step + begin;
      for (int64_t c = 0; c < n; ++c) first[c] += double(s[c]), second[c] += double(s[ld + c]);
    }
    for (int64_t c = 0; c < n; ++c) {
      const double rstd = 1 / __builtin_sqrt(double(variance[begin + c]) + epsilon),
                   a = double(gamma[begin + c]) * rstd, sum = second[c] * rstd;
      dbeta[begin + c] = float(first[c]);
      dgamma[begin + c] = float(sum);
      by_dy[begin + c] = float(a);
      by_x[begin + c] = float(-a * rstd * sum / double(rows));
      shift[begin + c] = float(-a * first[c] / double(rows));
    }
  }
}

template <bool kStream>
MP_INLINE void gradient_by(const float* x, const float* dy, const Folded& p, const float* mean, const float* by_dy,
                           const float* by_x, const float* shift, float* dx) {
  const int64_t ahead = look_ahead(p);
  const float* const constant[4] = {mean, by_dy, by_x, shift};
  column_map<4>(p, constant, [&](int64_t at, auto t, V(&c)[4]) __attribute__((always_inline)) {
    prefetch(x + at, ahead);
    prefetch(dy + at, ahead);
    put<kStream>(dx + at, fma(load(dy + at, t), c[1], fma(sub(load(x + at, t), c[0]), c[2], c[3])), t);
  });
  if (kStream) _mm_sfence();
}
void gradient(const float* x, const float* dy, Folded p, const float* mean, const float* by_dy, const float* by_x,
              const float* shift, float* dx, bool stream) {
  // over dy the lines are in the cache already
  if (stream && dx != dy && on_boundaries(dx, p))
    gradient_by<true>(x, dy, p, mean, by_dy, by_x, shift, dx);
  else
    gradient_by<false>(x, dy, p, mean, by_dy, by_x, shift, dx);
}

void add_up(const float* x, int64_t ld, int64_t count, float* out, int64_t n) {
  for (int64_t begin = 0; begin < n; begin += kStrip) {
    const int64_t m = n - begin < kStrip ? n - begin : kStrip;
    double total[kStrip] = {};
    for (int64_t k = 0; k < count; ++k)
      for (int64_t i = 0; i < m; ++i) total[i] += double(x[k * ld + begin + i]);
    for (int64_t i = 0; i < m; ++i) out[begin + i] = float(total[i]);
  }
}

}  // namespace

extern const ChannelKernels channel_kernels;
const ChannelKernels channel_kernels = {moments,           combine_moments, normalise, gradient_sums,
                                        combine_gradients, gradient,        add_up};

}  // namespace millpond::backend::cpu::MP_ISA
