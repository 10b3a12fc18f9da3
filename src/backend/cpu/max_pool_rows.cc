#include "backend/cpu/max_pool_rows.h"

#include "backend/cpu/conv_simd.h"

namespace millpond::backend::cpu::MP_ISA {
namespace {

struct Range {
  int64_t first, last;
};

/// The k in [0, size) with 0 <= start + k * dilation < limit.
MP_INLINE Range inside(int64_t start, int64_t dilation, int64_t size, int64_t limit) {
  const int64_t first = start < 0 ? (-start + dilation - 1) / dilation : 0,
                end = start < limit ? (limit - 1 - start) / dilation + 1 : 0;
  return {first, end < size ? end : size};
}

void max_rows(const PoolShape& s, const float* x, float* y, uint8_t* winners, int64_t first, int64_t last) noexcept {
  const int64_t row = s.width * s.channels;
  for (int64_t i = first; i < last; ++i) {
    const int64_t h = i * s.stride_h - s.top;
    const Range p = inside(h, s.dilation_h, s.size_h, s.height);
    for (int64_t j = 0; j < s.out_width; ++j) {
      const int64_t v = j * s.stride_w - s.left;
      const Range q = inside(v, s.dilation_w, s.size_w, s.width);
      const float* from = x + h * row + v * s.channels;
      const int64_t to = (i * s.out_width + j) * s.channels;
      each_vector(s.channels, [&](int64_t c, auto t) __attribute__((always_inline)) {
        V best = set(-__builtin_inff());
        I winner = seti(int32_t(p.first * s.size_w + q.first));
        for (int64_t a = p.first; a < p.last; ++a)
          for (int64_t b = q.first; b < q.last; ++b) {
            const V value = load(from + a * s.dilation_h * row + b * s.dilation_w * s.channels + c, t);
            const Bool better = either(gt(value, best), unordered(value, value));
            best = select(better, value, best);
            winner = selecti(better, seti(int32_t(a * s.size_w + b)), winner);
          }
        store(y + to + c, best, t);
        store_bytes(winners + to + c, winner, t);
      });
    }
  }
}

/// Clears rows [first, last) of dx and adds to each tap of a window, where it falls on them, what `share` says:
/// share(place in y, taps of the window inside the image, tail) gives a function of the tap's place in its window.
template <class F>
MP_INLINE void scatter(const PoolShape& s, float* dx, int64_t first, int64_t last, F&& share) {
  const int64_t row = s.width * s.channels;
  __builtin_memset(dx + first * row, 0, size_t(last - first) * size_t(row) * 4);
  const int64_t reach = (s.size_h - 1) * s.dilation_h, low = first + s.top - reach;
  const int64_t begin = low > 0 ? (low + s.stride_h - 1) / s.stride_h : 0, end = (last - 1 + s.top) / s.stride_h + 1;
  for (int64_t i = begin; i < (end < s.out_height ? end : s.out_height); ++i) {
    const int64_t h = i * s.stride_h - s.top;
    const Range p = inside(h, s.dilation_h, s.size_h, s.height);
    for (int64_t j = 0; j < s.out_width; ++j) {
      const int64_t v = j * s.stride_w - s.left, origin = h * row + v * s.channels,
                    out = (i * s.out_width + j) * s.channels;
      const Range q = inside(v, s.dilation_w, s.size_w, s.width);
      const int64_t members = (p.last - p.first) * (q.last - q.first);
      each_vector(s.channels, [&](int64_t c, auto t) __attribute__((always_inline)) {
        const auto of_tap = share(out + c, members, t);
        for (int64_t a = p.first; a < p.last; ++a) {
          const int64_t at_row = h + a * s.dilation_h;
          if (at_row < first || at_row >= last) continue;
          for (int64_t b = q.first; b < q.last; ++b) {
            const int64_t at = origin + a * s.dilation_h * row + b * s.dilation_w * s.channels + c;
            store(dx + at, add(load(dx + at, t), of_tap(a * s.size_w + b)), t);
          }
        }
      });
    }
  }
}

void max_gradient(const PoolShape& s, const uint8_t* winners, const float* dy, float* dx, int64_t first,
                  int64_t last) noexcept {
  scatter(s, dx, first, last, [&](int64_t at, int64_t, auto t) __attribute__((always_inline)) {
    const V g = load(dy + at, t);
    const I winner = load_bytes(winners + at, t);
    return [=](int64_t tap) __attribute__((always_inline)) { return zero_unless(eqi(winner, seti(int32_t(tap))), g); };
  });
}

void average_rows(const PoolShape& s, const float* x, float* y, int64_t first, int64_t last) noexcept {
  const int64_t row = s.width * s.channels;
  for (int64_t i = first; i < last; ++i) {
    const int64_t h = i * s.stride_h - s.top;
    const Range p = inside(h, s.dilation_h, s.size_h, s.height);
    for (int64_t j = 0; j < s.out_width; ++j) {
      const int64_t v = j * s.stride_w - s.left;
      const Range q = inside(v, s.dilation_w, s.size_w, s.width);
      const float* from = x + h * row + v * s.channels;
      float* to = y + (i * s.out_width + j) * s.channels;
      const int64_t members = (p.last - p.first) * (q.last - q.first);
      const V count = set(float(members > 1 ? members : 1));
      each_vector(s.channels, [&](int64_t c, auto t) __attribute__((always_inline)) {
        V sum = zero();
        for (int64_t a = p.first; a < p.last; ++a)
          for (int64_t b = q.first; b < q.last; ++b)
            sum = add(sum, load(from + a * s.dilation_h * row + b * s.dilation_w * s.channels + c, t));
        store(to + c, div(sum, count), t);
      });
    }
  }
}

void average_gradient(const PoolShape& s, const float* dy, float* dx, int64_t first, int64_t last) noexcept {
  scatter(s, dx, first, last, [&](int64_t at, int64_t members, auto t) __attribute__((always_inline)) {
    const V g = mul(load(dy + at, t), div(set(1), set(float(members > 1 ? members : 1))));
    return [=](int64_t) __attribute__((always_inline)) { return g; };
  });
}

}  // namespace

extern const PoolRowsTable pool_rows_table = {max_rows, max_gradient, average_rows, average_gradient};

}  // namespace millpond::backend::cpu::MP_ISA
