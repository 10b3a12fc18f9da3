#include "backend/cpu/conv_tile.h"

#include "backend/cpu/conv_simd.h"

namespace millpond::backend::cpu::MP_ISA {
namespace {

/// Sums of kNV - 1 whole vectors and the last one, for a few pixels or rows.
template <class Last, int kNV, int kCount>
struct Sums {
  static constexpr int kWhole = kNV - 1;
  V whole[kCount][kWhole > 0 ? kWhole : 1];
  typename Last::Type last[kCount];

  MP_INLINE void clear() {
    MP_UNROLL for (int i = 0; i < kCount; ++i) {
      MP_UNROLL for (int v = 0; v < kWhole; ++v) whole[i][v] = zero();
      last[i] = Last::zero();
    }
  }
  template <class T, class At>
  MP_INLINE void load_from(T tail, At&& at) {
    MP_UNROLL for (int i = 0; i < kCount; ++i) {
      MP_UNROLL for (int v = 0; v < kWhole; ++v) whole[i][v] = load(at(i) + kLanes * v);
      last[i] = load(at(i) + kLanes * kWhole, tail);
    }
  }
  template <class T, class At>
  MP_INLINE void store_to(T tail, At&& at) const {
    MP_UNROLL for (int i = 0; i < kCount; ++i) {
      MP_UNROLL for (int v = 0; v < kWhole; ++v) store(at(i) + kLanes * v, whole[i][v]);
      store(at(i) + kLanes * kWhole, last[i], tail);
    }
  }
  /// Adds the vectors at f, of which `end` is the last, times *x(i).
  template <class X>
  MP_INLINE void add(const float* f, typename Last::Type end, X&& x) {
    V a[kWhole > 0 ? kWhole : 1];
    MP_UNROLL for (int v = 0; v < kWhole; ++v) a[v] = pinned(load(f + kLanes * v));
    const typename Last::Type b = pinned(end);
    MP_UNROLL for (int i = 0; i < kCount; ++i) {
      MP_UNROLL for (int v = 0; v < kWhole; ++v) fma_from(whole[i][v], a[v], x(i));
      fma_from(last[i], b, x(i));
    }
  }
};

template <class Last, int kNV, int kP>
MP_INLINE void add_pixels(const PixelTile& t) {
  const auto tail = Last::tail(t.tail);
  const auto out = [&](int p) __attribute__((always_inline)) { return t.out[p]; };
  Sums<Last, kNV, kP> sums;
  if (t.add) {
    sums.load_from(tail, out);
  } else {
    sums.clear();
    MP_UNROLL for (int p = 0; p < kP; ++p) MP_UNROLL for (int v = 0; v < kNV; ++v)
        _mm_prefetch(reinterpret_cast<const char*>(t.out[p] + kLanes * v),
                     _MM_HINT_T0);  // or the stores at the end wait for memory
  }
  const float* const* rows = t.rows;
  for (int64_t r = 0; r < t.runs; ++r, rows += kP) {
    const float* x[kP];
    MP_UNROLL for (int p = 0; p < kP; ++p) x[p] = rows[p] + t.length;
    const float* ahead = rows[0] + t.ahead;
    const float* f = t.filters[r];
    for (int64_t k = -t.length; k < 0; ++k, f += kLanes * kNV) {
      _mm_prefetch(reinterpret_cast<const char*>(ahead), _MM_HINT_T0);
      ahead += kP;
      sums.add(f, Last::load(f + kLanes * (kNV - 1)), [&](int p) __attribute__((always_inline)) { return x[p] + k; });
    }
  }
  sums.store_to(tail, out);
}

template <int kNV, int kP>
void pixel_tile(const PixelTile& t) noexcept {
  t.tail <= kLanes / 2 ? add_pixels<HalfLast, kNV, kP>(t) : add_pixels<WholeLast, kNV, kP>(t);
}

// Pixels of wide images lie far apart, and no prefetcher of the processor follows pointers.
constexpr int kAhead = ConvTiles::kAhead;

// The vectors are dy's channels, one row of sums for each float of x; `turned`, the other way round.
template <bool kTurned, class Last, int kNV, int kR>
MP_INLINE void add_rows(const FilterTile& t) {
  const auto tail = Last::tail(t.tail);
  const auto out = [&](int r) __attribute__((always_inline)) { return t.out + r * t.out_stride; };
  Sums<Last, kNV, kR> sums;
  t.add ? sums.load_from(tail, out) : sums.clear();
  const float* dy = t.dy;
  const float* const* end = t.x + t.pixels;
  for (const float* const* p = t.x; p != end; ++p, dy += t.dy_stride) {
    const float* x = *p + t.offset;
    _mm_prefetch(reinterpret_cast<const char*>(p[kAhead] + t.offset), _MM_HINT_T0);
    const float *vectors = kTurned ? x : dy, *single = kTurned ? dy : x;
    sums.add(vectors, load(vectors + kLanes * (kNV - 1), tail),
             [&](int r) __attribute__((always_inline)) { return single + r; });
  }
  sums.store_to(tail, out);
}

template <int kNV, int kR>
void filter_tile(const FilterTile& t) noexcept {
  t.tail <= kLanes / 2 ? add_rows<false, HalfLast, kNV, kR>(t) : add_rows<false, WholeLast, kNV, kR>(t);
}

template <int kNV, int kR>
void turned_tile(const FilterTile& t) noexcept {
  t.tail <= kLanes / 2 ? add_rows<true, HalfLast, kNV, kR>(t) : add_rows<true, WholeLast, kNV, kR>(t);
}

template <int kP>
void each_tile(const PixelTile& t) noexcept {
  each_vector(t.length, [&](int64_t c, auto m) __attribute__((always_inline)) {
    V acc[kP];
    MP_UNROLL for (int p = 0; p < kP; ++p) acc[p] = t.add ? load(t.out[p] + c, m) : zero();
    for (int64_t r = 0; r < t.runs; ++r) {
      const V f = load(t.filters[r] + c, m);
      MP_UNROLL for (int p = 0; p < kP; ++p) acc[p] = fma(load(t.rows[r * kP + p] + c, m), f, acc[p]);
    }
    MP_UNROLL for (int p = 0; p < kP; ++p) store(t.out[p] + c, acc[p], m);
  });
}

template <int kR>
MP_INLINE void each_rows(const float* const* x, int64_t stride, int64_t pixels, const float* dy, int64_t channels,
                         float* out, bool add_to) {
  each_vector(channels, [&](int64_t c, auto m) __attribute__((always_inline)) {
    V acc[kR];
    MP_UNROLL for (int r = 0; r < kR; ++r) acc[r] = add_to ? load(out + r * channels + c, m) : zero();
    for (int64_t p = 0; p < pixels; ++p) {
      const V d = load(dy + p * channels + c, m);
      MP_UNROLL for (int r = 0; r < kR; ++r) acc[r] = fma(load(x[r * stride + p] + c, m), d, acc[r]);
    }
    MP_UNROLL for (int r = 0; r < kR; ++r) store(out + r * channels + c, acc[r], m);
  });
}

void each_filter(const float* const* x, int64_t stride, int64_t runs, int64_t pixels, const float* dy, int64_t channels,
                 float* out, bool add_to) noexcept {
  int64_t r = 0;
  for (; r + 5 <= runs; r += 5) each_rows<5>(x + r * stride, stride, pixels, dy, channels, out + r * channels, add_to);
  for (; r + 3 <= runs; r += 3) each_rows<3>(x + r * stride, stride, pixels, dy, channels, out + r * channels, add_to);
  for (; r < runs; ++r) each_rows<1>(x + r * stride, stride, pixels, dy, channels, out + r * channels, add_to);
}

void pack(float* to, const float* from, int64_t rows, int64_t stride, int vectors, int64_t channels) noexcept {
  const Tail tail = tail_of(channels - kLanes * (vectors - 1));
  for (int64_t k = 0; k < rows; ++k, from += stride, to += kLanes * vectors) {
    for (int v = 0; v < vectors; ++v)
      _mm_prefetch(reinterpret_cast<const char*>(from + 16 * stride + kLanes * v), _MM_HINT_T0);
    for (int v = 0; v < vectors - 1; ++v) store(to + kLanes * v, load(from + kLanes * v));
    store(to + kLanes * (vectors - 1), load(from + kLanes * (vectors - 1), tail));
  }
}

#ifdef __AVX512F__
MP_INLINE void transpose(V (&r)[16]) {
  V t[16];
  MP_UNROLL for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
  }
  MP_UNROLL for (int i = 0; i < 16; i += 4) {
    MP_UNROLL for (int j = 0; j < 2; ++j) {
      r[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(t[i + j]), _mm512_castps_pd(t[i + j + 2])));
      r[i + 2 * j + 1] =
          _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(t[i + j]), _mm512_castps_pd(t[i + j + 2])));
    }
  }
  MP_UNROLL for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
  }
  MP_UNROLL for (int i = 0; i < 8; ++i) {
    r[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
  }
}
#else
MP_INLINE void transpose(V (&r)[8]) {
  V t[8];
  MP_UNROLL for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  MP_UNROLL for (int i = 0; i < 8; i += 4) {
    MP_UNROLL for (int j = 0; j < 2; ++j) {
      r[i + 2 * j] = _mm256_castpd_ps(_mm256_unpacklo_pd(_mm256_castps_pd(t[i + j]), _mm256_castps_pd(t[i + j + 2])));
      r[i + 2 * j + 1] =
          _mm256_castpd_ps(_mm256_unpackhi_pd(_mm256_castps_pd(t[i + j]), _mm256_castps_pd(t[i + j + 2])));
    }
  }
  MP_UNROLL for (int i = 0; i < 4; ++i) {
    t[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
    t[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
  }
  MP_UNROLL for (int i = 0; i < 8; ++i) r[i] = t[i];
}
#endif

void pack_transposed(float* to, const float* from, int64_t rows, int64_t stride, int vectors,
                     int64_t channels) noexcept {
  const int64_t width = int64_t(kLanes) * vectors;
  for (int64_t k = 0; k < rows; k += kLanes) {
    const int64_t n = rows - k < kLanes ? rows - k : kLanes;
    const Tail tail = tail_of(n);
    for (int64_t c = 0; c < width; c += kLanes) {
      V r[kLanes];
      const int64_t m = channels - c < kLanes ? channels - c : kLanes;
      if (n == kLanes && m == kLanes) {
        MP_UNROLL for (int i = 0; i < kLanes; ++i) r[i] = load(from + (c + i) * stride + k);
        transpose(r);
        MP_UNROLL for (int i = 0; i < kLanes; ++i) store(to + (k + i) * width + c, r[i]);
        continue;
      }
      for (int i = 0; i < kLanes; ++i) r[i] = i < m ? load(from + (c + i) * stride + k, tail) : zero();
      transpose(r);
      for (int i = 0; i < n; ++i) store(to + (k + i) * width + c, r[i]);
    }
  }
}

void unturn(float* to, int64_t to_stride, const float* from, int64_t from_stride, int64_t rows, int64_t channels,
            bool add_to) noexcept {
  for (int64_t k = 0; k < rows; k += kLanes)
    for (int64_t c = 0; c < channels; c += kLanes) {
      const int64_t n = rows - k < kLanes ? rows - k : kLanes, m = channels - c < kLanes ? channels - c : kLanes;
      const Tail rest = tail(n), tail_to = tail(m);
      V r[kLanes];
      for (int i = 0; i < kLanes; ++i) r[i] = i < m ? load(from + (c + i) * from_stride + k, rest) : zero();
      transpose(r);
      for (int64_t i = 0; i < n; ++i) {
        float* at = to + (k + i) * to_stride + c;
        store(at, add_to ? add(load(at, tail_to), r[i]) : r[i], tail_to);
      }
    }
}

void add_up(float* to, const float* from, int64_t size, int64_t stride, int64_t count) noexcept {
  for (int64_t i = 0; i < size; i += kLanes) {
    const Tail tail = tail_of(size - i);
    V a = load(from + i, tail);
    for (int64_t s = 1; s < count; ++s) a = add(a, load(from + s * stride + i, tail));
    store(to + i, a, tail);
  }
}

}  // namespace

#define MP_PIXELS(v)                                                       \
  {nullptr,          pixel_tile<v, 1>, pixel_tile<v, 2>, pixel_tile<v, 3>, \
   pixel_tile<v, 4>, pixel_tile<v, 5>, pixel_tile<v, 6>, MP_LAST(v)}
#define MP_FILTER(v)                                                           \
  {nullptr,           filter_tile<v, 1>, filter_tile<v, 2>, filter_tile<v, 3>, \
   filter_tile<v, 4>, filter_tile<v, 5>, filter_tile<v, 6>, MP_LAST_ROWS(v)}
#define MP_TURNED(v)                                                           \
  {nullptr,           turned_tile<v, 1>, turned_tile<v, 2>, turned_tile<v, 3>, \
   turned_tile<v, 4>, turned_tile<v, 5>, turned_tile<v, 6>, MP_LAST_TURNED(v)}
#define MP_EACH                                                          \
  {nullptr,      each_tile<1>, each_tile<2>, each_tile<3>, each_tile<4>, \
   each_tile<5>, each_tile<6>, each_tile<7>, each_tile<8>}
#ifdef __AVX512F__
// 32 registers: 4 x 7 sums and 4 vectors of filter are all of them.
#define MP_LAST(v) pixel_tile<v, 7>, v == 4 ? nullptr : pixel_tile<v == 4 ? 1 : v, 8>
#define MP_LAST_ROWS(v) filter_tile<v, 7>, v == 4 ? nullptr : filter_tile<v == 4 ? 1 : v, 8>
#define MP_LAST_TURNED(v) turned_tile<v, 7>, v == 4 ? nullptr : turned_tile<v == 4 ? 1 : v, 8>
extern const ConvTiles conv_tiles = {16,
                                     4,
                                     {0, 8, 8, 8, 7},
                                     {0, 8, 8, 8, 7},
                                     {{}, MP_PIXELS(1), MP_PIXELS(2), MP_PIXELS(3), MP_PIXELS(4)},
                                     {{}, MP_FILTER(1), MP_FILTER(2), MP_FILTER(3), MP_FILTER(4)},
                                     {{}, MP_TURNED(1), MP_TURNED(2), MP_TURNED(3), MP_TURNED(4)},
                                     MP_EACH,
                                     each_filter,
                                     pack,
                                     pack_transposed,
                                     unturn,
                                     add_up};
#else
#define MP_LAST(v) nullptr, nullptr
#define MP_LAST_ROWS(v) nullptr, nullptr
#define MP_LAST_TURNED(v) nullptr, nullptr
extern const ConvTiles conv_tiles = {8,
                                     2,
                                     {0, 6, 6, 0, 0},
                                     {0, 6, 6, 0, 0},
                                     {{}, MP_PIXELS(1), MP_PIXELS(2), {}, {}},
                                     {{}, MP_FILTER(1), MP_FILTER(2), {}, {}},
                                     {{}, MP_TURNED(1), MP_TURNED(2), {}, {}},
                                     MP_EACH,
                                     each_filter,
                                     pack,
                                     pack_transposed,
                                     unturn,
                                     add_up};
#endif

}  // namespace millpond::backend::cpu::MP_ISA
