#include "backend/cpu/winograd_pool.h"

#include "backend/cpu/conv_simd.h"

namespace millpond::backend::cpu::MP_ISA {
#ifdef __AVX512F__
namespace {

constexpr int64_t kLine = WinogradShape::kLine, kPair = 2 * kLine;

/// Channels of vectors [0, vectors()) go in pairs of vectors; where pair k of the transformed filter begins.
MP_INLINE int64_t pair_at(const WinogradShape& s, int64_t k) { return k * 16 * s.cin * 32; }

void transform(const WinogradShape& s, const float* filter, float* u) noexcept {
  const int64_t vectors = s.vectors();
  for (int64_t v = 0; v < vectors; ++v) {
    const int64_t wide = v / 2 * 2 + 1 < vectors ? 32 : 16;
    const Tail t = tail_of(s.cout - 16 * v);
    for (int64_t c = 0; c < s.cin; ++c) {
      V f[3][3], h[4][3];
      MP_UNROLL for (int i = 0; i < 9; ++i) f[i / 3][i % 3] = load(filter + (i * s.cin + c) * s.cout + 16 * v, t);
      const V half = set(.5f);
      MP_UNROLL for (int j = 0; j < 3; ++j) {
        const V sum = add(f[0][j], f[2][j]);
        h[0][j] = f[0][j], h[1][j] = mul(half, add(sum, f[1][j])), h[2][j] = mul(half, sub(sum, f[1][j])),
        h[3][j] = neg(f[2][j]);
      }
      float* to = u + pair_at(s, v / 2) + c * wide + v % 2 * 16;
      MP_UNROLL for (int i = 0; i < 4; ++i) {
        const V sum = add(h[i][0], h[i][2]);
        // The last place of a row is only ever subtracted: its sign is in the filter.
        store(to + (i * 4 + 0) * s.cin * wide, h[i][0]);
        store(to + (i * 4 + 1) * s.cin * wide, mul(half, add(sum, h[i][1])));
        store(to + (i * 4 + 2) * s.cin * wide, mul(half, sub(sum, h[i][1])));
        store(to + (i * 4 + 3) * s.cin * wide, neg(h[i][2]));
      }
    }
  }
}

/// The transformed input of a run of cells, as eight lines. First rows: t0 = d0 - d2, t1 = d1 + d2, t2 = d2 - d1,
/// t3 = d1 - d3. Then columns: with c channels pixels lie c floats apart and cells 2c, so all four columns of a cell
/// are its 2c floats of two lines, and the products below broadcast straight out of them, without a gather:
///   D = t[x] - t[x + 2c]                              columns 0 (first c floats of the cell) and 3 (last c)
///   E = t[x + 2c] - t[x + c] in the first c: column 2; t[x] + t[x + c] in the last c: column 1
/// Line i of D is at lines + i * kPair, of E at + kLine. `from` are four rows, `have` floats of them may be read.
MP_INLINE void rows_of(const float* const (&from)[4], int64_t x, int64_t have, V (&t)[4]) {
  const Tail m = tail_of(have > x ? have - x : 0);
  const V d0 = load(from[0] + x, m), d1 = load(from[1] + x, m), d2 = load(from[2] + x, m), d3 = load(from[3] + x, m);
  t[0] = sub(d0, d2), t[1] = add(d1, d2), t[2] = sub(d2, d1), t[3] = sub(d1, d3);
}

void fill_lines(const float* const (&from)[4], int64_t cin, int64_t cells, int64_t have, const uint16_t* second,
                float* lines) {
  const int64_t floats = cells * 2 * cin;
  if (cin <= 8) {  // a shift by 2c stays within two vectors: each float is loaded and each row summed once
    const I by1 = addi(lanes(), seti(int(cin))), by2 = addi(lanes(), seti(int(2 * cin)));
    V now[4], next[4];
    rows_of(from, 0, have, now);
    for (int64_t x = 0, k = 0; x < floats; x += 16, ++k) {
      rows_of(from, x + 16, have, next);
      const __mmask16 last = second[k];
      MP_UNROLL for (int i = 0; i < 4; ++i) {
        const V a = _mm512_permutex2var_ps(now[i], by1, next[i]), b = _mm512_permutex2var_ps(now[i], by2, next[i]);
        store(lines + i * kPair + x, sub(now[i], b));
        store(lines + i * kPair + kLine + x, _mm512_mask_add_ps(sub(b, a), last, now[i], a));
        now[i] = next[i];
      }
    }
    return;
  }
  for (int64_t x = 0, k = 0; x < floats; x += 16, ++k) {
    V now[4], a[4], b[4];
    rows_of(from, x, have, now), rows_of(from, x + cin, have, a), rows_of(from, x + 2 * cin, have, b);
    const __mmask16 last = second[k];
    MP_UNROLL for (int i = 0; i < 4; ++i) {
      store(lines + i * kPair + x, sub(now[i], b[i]));
      store(lines + i * kPair + kLine + x, _mm512_mask_add_ps(sub(b[i], a[i]), last, now[i], a[i]));
    }
  }
}

struct Cell {
  const float* lines;  // at the first cell
  const float* u;
  int64_t cin;
  const float* bias;
  float* pooled;  // of the first cell; cells lie cout apart
  int64_t cout;
  uint16_t* winners;  // of the first cell and vector
  int64_t masks;      // from cell to cell
  int tail;           // channels of the last vector
  bool stream;
};

/// kN cells beside each other times kH vectors of channels. kC: input channels, 0: any number (`cin`).
template <int kC, int kN, int kH>
MP_INLINE void cells(const Cell& cell) {
  const int64_t cin = kC ? kC : cell.cin, wide = kH * 16;
  // One row of the 4 x 4 tile: s = M0 + (M1 + M2), d = (M1 - M2) - M3.
  auto tile_row = [&](int i, V(&s)[kN][kH], V(&d)[kN][kH]) __attribute__((always_inline)) {
    const float *D = cell.lines + i * kPair, *E = D + kLine, *U = cell.u + i * 4 * cin * wide;
    V m1[kN][kH], m2[kN][kH];
    auto products = [&](const float* u, const float* in, V(&m)[kN][kH], bool fresh) __attribute__((always_inline)) {
      if (fresh) MP_UNROLL for (int n = 0; n < kN; ++n) MP_UNROLL for (int h = 0; h < kH; ++h) m[n][h] = zero();
      auto one = [&](int64_t c) __attribute__((always_inline)) {
        V f[kH];
        MP_UNROLL for (int h = 0; h < kH; ++h) f[h] = pinned(load(u + c * wide + 16 * h));
        MP_UNROLL for (int n = 0; n < kN; ++n) {
          MP_UNROLL for (int h = 0; h < kH; ++h) fma_from(m[n][h], f[h], in + n * 2 * cin + c);
        }
      };
      if constexpr (kC > 0) {
        MP_UNROLL for (int c = 0; c < kC; ++c) one(c);
      } else {
        for (int64_t c = 0; c < cin; ++c) one(c);
      }
    };
    products(U + cin * wide, E + cin, m1, true);
    products(U + 2 * cin * wide, E, m2, true);
    MP_UNROLL for (int n = 0; n < kN; ++n) MP_UNROLL for (int h = 0; h < kH; ++h) s[n][h] = add(m1[n][h], m2[n][h]),
                                                                                  d[n][h] = sub(m1[n][h], m2[n][h]);
    products(U, D, s, false);
    products(U + 3 * cin * wide, D + cin, d, false);
  };
  V y[2][2][kN][kH];  // [row][column]
  {
    V s1[kN][kH], d1[kN][kH], s2[kN][kH], d2[kN][kH];
    tile_row(1, s1, d1);
    tile_row(2, s2, d2);
    MP_UNROLL for (int n = 0; n < kN; ++n) MP_UNROLL for (int h = 0; h < kH; ++h) {
      y[0][0][n][h] = add(s1[n][h], s2[n][h]), y[0][1][n][h] = add(d1[n][h], d2[n][h]);
      y[1][0][n][h] = sub(s1[n][h], s2[n][h]), y[1][1][n][h] = sub(d1[n][h], d2[n][h]);
    }
    tile_row(0, s1, d1);
    MP_UNROLL for (int n = 0; n < kN; ++n) MP_UNROLL for (int h = 0; h < kH; ++h)
        y[0][0][n][h] = add(y[0][0][n][h], s1[n][h]),
        y[0][1][n][h] = add(y[0][1][n][h], d1[n][h]);
    tile_row(3, s1, d1);
    MP_UNROLL for (int n = 0; n < kN; ++n) MP_UNROLL for (int h = 0; h < kH; ++h)
        y[1][0][n][h] = add(y[1][0][n][h], s1[n][h]),
        y[1][1][n][h] = add(y[1][1][n][h], d1[n][h]);
  }
  const Tail last = tail_of(cell.tail);
  MP_UNROLL for (int n = 0; n < kN; ++n) MP_UNROLL for (int h = 0; h < kH; ++h) {
    const V a = y[0][0][n][h], b = y[0][1][n][h], c = y[1][0][n][h], e = y[1][1][n][h];
    const __mmask16 right0 = gt(b, a), right1 = gt(e, c);
    const V upper = max(b, a), lower = max(e, c);  // the first where both are equal
    const __mmask16 down = gt(lower, upper);
    cell.winners[n * cell.masks + 2 * h] = uint16_t((right1 & down) | (right0 & ~down));
    cell.winners[n * cell.masks + 2 * h + 1] = down;
    // max keeps the second operand where one is NaN: a, which so passes. The other three are looked at.
    const __mmask16 nan = unordered(b, e) | unordered(c, c);
    const V best = _mm512_mask_mov_ps(max(lower, upper), nan, set(__builtin_nanf("")));
    const V biased = add(best, h + 1 < kH ? load(cell.bias + 16 * h) : load(cell.bias + 16 * h, last));
    const V value = max(zero(), biased);
    float* to = cell.pooled + n * cell.cout + 16 * h;
    if (cell.stream)
      stream(to, value);
    else if (h + 1 < kH)
      store(to, value);
    else
      store(to, value, last);
  }
}

template <int kC, int kN, int kH>
void cells_in_row(Cell cell, int64_t count) {
  const int64_t step = 2 * cell.cin;
  for (; count >= kN; count -= kN) {
    cells<kC, kN, kH>(cell);
    cell.lines += kN * step, cell.pooled += kN * cell.cout, cell.winners += kN * cell.masks;
  }
  for (; count > 0; --count) {
    cells<kC, 1, kH>(cell);
    cell.lines += step, cell.pooled += cell.cout, cell.winners += cell.masks;
  }
}

template <int kC>
void cells_by_vectors(const Cell& cell, int64_t count, bool two) {
  if (two)
    cells_in_row<kC, 2, 2>(cell, count);
  else
    cells_in_row<kC, 3, 1>(cell, count);
}

void pool(const WinogradShape& s, const float* image, const float* u, const float* bias, float* pooled,
          uint16_t* winners, int64_t first, int64_t last, float* lines, float* ring) noexcept {
  const int64_t step = 2 * s.cin, row = s.width * s.cin;
  // Cells whose lines are filled together: an even number, so that at most the last of a row is alone; the lines of 3
  // channels and 64 of output are 7 KiB and stay in L1 beside the filter.
  const int64_t fit = (s.cin <= 8 ? kLine / 2 : kLine) / step - 1, parts = (s.cols + fit - 1) / fit;
  int64_t run = (s.cols + parts - 1) / parts;
  run = run + run % 2 <= fit + 1 && run < s.cols ? run + run % 2 : run;
  uint16_t second[kLine / 16];
  for (int64_t k = 0; k < kLine / 16; ++k) {
    second[k] = 0;
    for (int64_t l = 0; l < 16; ++l) second[k] = uint16_t(second[k] | ((16 * k + l) % step >= s.cin) << l);
  }
  int64_t copied = 2 * first - s.top;  // next row of the image to be copied
  for (int64_t r = first; r < last; ++r) {
    const int64_t y = 2 * r - s.top;
    const float* from[4];
    if (s.row_floats) {
      for (; copied < y + 4; ++copied) {
        float* to = ring + (copied & 3) * s.row_floats;
        for (int64_t x = 0; x < s.row_floats; x += 16) {
          const Tail t = tail_of(s.row_floats - x);
          V v = zero();
          const int64_t at = x - s.left * s.cin;  // in the image's row
          if (copied >= 0 && copied < s.height) {
            if (at >= 0)
              v = at < row ? load(image + copied * row + at, tail_of(row - at)) : zero();
            else if (at > -16)
              v = _mm512_maskz_loadu_ps(__mmask16(tail_of(row - at).m & ~((1u << -at) - 1)), image + copied * row + at);
          }
          store(to + x, v, t);
        }
      }
      for (int i = 0; i < 4; ++i) from[i] = ring + ((y + i) & 3) * s.row_floats;
    } else {
      for (int i = 0; i < 4; ++i) from[i] = image + (y + i) * row;
    }
    const int64_t have = s.row_floats ? s.row_floats : row;
    for (int64_t c = 0; c < s.cols; c += run) {
      const int64_t count = s.cols - c < run ? s.cols - c : run;
      const float* const at[4] = {from[0] + c * step, from[1] + c * step, from[2] + c * step, from[3] + c * step};
      fill_lines(at, s.cin, count, have - c * step, second, lines);
      const int64_t vectors = s.vectors();
      for (int64_t v = 0; v < vectors; v += 2) {
        const bool two = v + 1 < vectors;
        const int64_t place = r * s.cols + c, end = v + (two ? 2 : 1),
                      tail = s.cout - 16 * (end - 1) < 16 ? s.cout - 16 * (end - 1) : 16;
        const Cell cell{lines,
                        u + pair_at(s, v / 2),
                        s.cin,
                        bias + 16 * v,
                        pooled + place * s.cout + 16 * v,
                        s.cout,
                        winners + (place * vectors + v) * 2,
                        vectors * 2,
                        int(tail),
                        s.stream};
        switch (s.cin) {
          case 1:
            cells_by_vectors<1>(cell, count, two);
            break;
          case 2:
            cells_by_vectors<2>(cell, count, two);
            break;
          case 3:
            cells_by_vectors<3>(cell, count, two);
            break;
          case 4:
            cells_by_vectors<4>(cell, count, two);
            break;
          default:
            cells_by_vectors<0>(cell, count, two);
            break;
        }
      }
    }
  }
  if (s.stream) _mm_sfence();
}

}  // namespace
extern const WinogradTable winograd_table = {transform, pool};
#else
extern const WinogradTable winograd_table = {nullptr, nullptr};
#endif

}  // namespace millpond::backend::cpu::MP_ISA
