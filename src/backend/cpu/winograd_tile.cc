#include "backend/cpu/winograd_tile.h"

#include "backend/cpu/conv_simd.h"

namespace millpond::backend::cpu::MP_ISA {
namespace {

MP_INLINE void input_map(const V (&d)[4], V (&t)[4]) {
  t[0] = sub(d[0], d[2]), t[1] = add(d[1], d[2]), t[2] = sub(d[2], d[1]), t[3] = sub(d[1], d[3]);
}

void input(const float* const* pixels, int64_t channels, float* v, int64_t plane) noexcept {
  each_vector(channels, [&](int64_t c, auto m) __attribute__((always_inline)) {
    V t[4][4];  // [column][row]
    MP_UNROLL for (int j = 0; j < 4; ++j) {
      V d[4];
      MP_UNROLL for (int i = 0; i < 4; ++i) d[i] = load(pixels[4 * i + j] + c, m);
      input_map(d, t[j]);
    }
    MP_UNROLL for (int i = 0; i < 4; ++i) {
      const V r[4] = {t[0][i], t[1][i], t[2][i], t[3][i]};
      V o[4];
      input_map(r, o);
      MP_UNROLL for (int j = 0; j < 4; ++j) store(v + (4 * i + j) * plane + c, o[j], m);
    }
  });
}

void input_row(int i, const float* const* pixels, int64_t channels, float* v, int64_t plane) noexcept {
  // t_i = d[a] +- d[b]
  static constexpr int kA[4] = {0, 1, 2, 1}, kB[4] = {2, 2, 1, 3};
  const float *const *a = pixels + 4 * kA[i], *const *b = pixels + 4 * kB[i];
  const V sign = set(i == 1 ? 1.f : -1.f);
  each_vector(channels, [&](int64_t c, auto m) __attribute__((always_inline)) {
    V r[4], o[4];
    MP_UNROLL for (int j = 0; j < 4; ++j) r[j] = fma(load(b[j] + c, m), sign, load(a[j] + c, m));
    input_map(r, o);
    MP_UNROLL for (int j = 0; j < 4; ++j) store(v + j * plane + c, o[j], m);
  });
}

MP_INLINE void filter_map(const V (&f)[3], V (&u)[4]) {
  const V half = set(.5f), sum = add(f[0], f[2]);
  u[0] = f[0], u[1] = mul(half, add(sum, f[1])), u[2] = mul(half, sub(sum, f[1])), u[3] = f[2];
}

void filter(const float* const* taps, int64_t rows, int64_t stride, int vectors, int64_t channels, float* u,
            int64_t plane) noexcept {
  for (int64_t k = 0; k < rows; ++k)
    for (int v = 0; v < vectors; ++v) {
      const Tail m = tail_of(channels - kLanes * v);
      V h[3][4];  // [column][row]
      MP_UNROLL for (int j = 0; j < 3; ++j) {
        V f[3];
        MP_UNROLL for (int i = 0; i < 3; ++i) f[i] = load(taps[3 * i + j] + k * stride + kLanes * v, m);
        filter_map(f, h[j]);
      }
      MP_UNROLL for (int i = 0; i < 4; ++i) {
        const V f[3] = {h[0][i], h[1][i], h[2][i]};
        V o[4];
        filter_map(f, o);
        MP_UNROLL for (int j = 0; j < 4; ++j) store(u + (4 * i + j) * plane + (k * vectors + v) * kLanes, o[j]);
      }
    }
}

MP_INLINE void output_map(const V (&m)[4], V (&y)[2]) {
  const V s = add(m[1], m[2]), d = sub(m[1], m[2]);
  y[0] = add(m[0], s), y[1] = sub(d, m[3]);
}

void output(const float* from, int64_t plane, int64_t channels, float* const* pixels) noexcept {
  each_vector(channels, [&](int64_t c, auto t) __attribute__((always_inline)) {
    V h[4][2];  // [column][row]
    MP_UNROLL for (int j = 0; j < 4; ++j) {
      const V m[4] = {load(from + j * plane + c), load(from + (4 + j) * plane + c), load(from + (8 + j) * plane + c),
                      load(from + (12 + j) * plane + c)};
      output_map(m, h[j]);
    }
    MP_UNROLL for (int i = 0; i < 2; ++i) {
      const V m[4] = {h[0][i], h[1][i], h[2][i], h[3][i]};
      V y[2];
      output_map(m, y);
      MP_UNROLL for (int j = 0; j < 2; ++j) if (pixels[2 * i + j]) store(pixels[2 * i + j] + c, y[j], t);
    }
  });
}

void gradient_row(int i, const float* const* pixels, int vectors, int64_t channels, float* w, int64_t plane) noexcept {
  // row i of A: d[0], d[0] + d[1], d[0] - d[1], -d[1]
  const V upper = set(i == 3 ? 0.f : 1.f), lower = set(i == 0 ? 0.f : i == 1 ? 1.f : -1.f);
  for (int v = 0; v < vectors; ++v) {
    const Tail m = tail_of(channels - kLanes * v);
    V r[2];
    MP_UNROLL for (int j = 0; j < 2; ++j) r[j] =
        fma(load(pixels[2 + j] + kLanes * v, m), lower, mul(load(pixels[j] + kLanes * v, m), upper));
    float* to = w + kLanes * v;
    store(to, r[0]), store(to + plane, add(r[0], r[1])), store(to + 2 * plane, sub(r[0], r[1])),
        store(to + 3 * plane, neg(r[1]));
  }
}

MP_INLINE void filter_gradient_map(const V (&m)[4], V (&f)[3]) {
  const V half = set(.5f), s = mul(half, add(m[1], m[2]));
  f[0] = add(m[0], s), f[1] = mul(half, sub(m[1], m[2])), f[2] = add(m[3], s);
}

void filter_gradient(const float* from, int64_t plane, int64_t stride, int64_t partials, int64_t channels,
                     float* const* taps) noexcept {
  each_vector(channels, [&](int64_t c, auto t) __attribute__((always_inline)) {
    V h[4][3];  // [column][row]
    MP_UNROLL for (int j = 0; j < 4; ++j) {
      V m[4];
      MP_UNROLL for (int i = 0; i < 4; ++i) {
        m[i] = load(from + (4 * i + j) * plane + c);
        for (int64_t s = 1; s < partials; ++s) m[i] = add(m[i], load(from + s * stride + (4 * i + j) * plane + c));
      }
      filter_gradient_map(m, h[j]);
    }
    MP_UNROLL for (int i = 0; i < 3; ++i) {
      const V m[4] = {h[0][i], h[1][i], h[2][i], h[3][i]};
      V f[3];
      filter_gradient_map(m, f);
      MP_UNROLL for (int j = 0; j < 3; ++j) store(taps[3 * i + j] + c, f[j], t);
    }
  });
}

}  // namespace

extern const WinogradTiles winograd_tiles = {input, input_row, filter, output, gradient_row, filter_gradient};

}  // namespace millpond::backend::cpu::MP_ISA
