#include "backend/cpu/copy_kernels.h"

#include <cstring>

#include "backend/cpu/tile_transpose.h"

namespace millpond::backend::cpu::MP_ISA {
namespace {

constexpr int64_t L = kLanes;

/// Floats up to the next vector boundary.
MP_INLINE int64_t to_boundary(const float* p, int64_t n) {
  const int64_t m = int64_t((sizeof(V) - reinterpret_cast<uintptr_t>(p) % sizeof(V)) % sizeof(V) / sizeof(float));
  return m < n ? m : n;
}

/// n >= kLanes floats: the last vector may write some a second time.
MP_INLINE void copy_long(const float* from, float* to, int64_t n) {
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L) {
    const V a = load(from + i), b = load(from + i + L), c = load(from + i + 2 * L), d = load(from + i + 3 * L);
    store(to + i, a), store(to + i + L, b), store(to + i + 2 * L, c), store(to + i + 3 * L, d);
  }
  for (; i + L <= n; i += L) store(to + i, load(from + i));
  if (i < n) store(to + n - L, load(from + n - L));
}

MP_INLINE void copy_streamed(const float* from, float* to, int64_t n) {
  const int64_t head = to_boundary(to, n);
  if (head) store(to, load(from, tail(head)), tail(head));
  int64_t i = head;
  for (; i + 4 * L <= n; i += 4 * L) {
    const V a = load(from + i), b = load(from + i + L), c = load(from + i + 2 * L), d = load(from + i + 3 * L);
    stream(to + i, a), stream(to + i + L, b), stream(to + i + 2 * L, c), stream(to + i + 3 * L, d);
  }
  for (; i + L <= n; i += L) stream(to + i, load(from + i));
  if (i < n) store(to + i, load(from + i, tail(n - i)), tail(n - i));
}

MP_INLINE float* floats(std::byte* p) { return reinterpret_cast<float*>(p); }
MP_INLINE const float* floats(const std::byte* p) { return reinterpret_cast<const float*>(p); }

void copy(const std::byte* from, int64_t from_step, std::byte* to, int64_t to_step, int64_t rows, int64_t bytes,
          bool streamed) {
  if (from_step == bytes && to_step == bytes) bytes *= rows, rows = rows > 0;
  const int64_t n = bytes / 4;
  if (bytes % 4) {
    for (int64_t r = 0; r < rows; ++r) std::memcpy(to + r * to_step, from + r * from_step, size_t(bytes));
  } else if (n == 1) {
    for (int64_t r = 0; r < rows; ++r) std::memcpy(to + r * to_step, from + r * from_step, 4);
  } else if (n <= L) {
    const Tail t = tail(n);
    for (int64_t r = 0; r < rows; ++r) store(floats(to + r * to_step), load(floats(from + r * from_step), t), t);
  } else if (streamed && n >= 8 * L && (reinterpret_cast<uintptr_t>(to) | uintptr_t(to_step)) % 4 == 0) {
    for (int64_t r = 0; r < rows; ++r) copy_streamed(floats(from + r * from_step), floats(to + r * to_step), n);
    _mm_sfence();
  } else {
    for (int64_t r = 0; r < rows; ++r) copy_long(floats(from + r * from_step), floats(to + r * to_step), n);
  }
}

void fill(float* to, float value, int64_t n, bool streamed) {
  const V v = set(value);
  if (!streamed || n < 8 * L) {
    each_vector(n, [&](int64_t i, auto t) __attribute__((always_inline)) { store(to + i, v, t); });
    return;
  }
  const int64_t head = to_boundary(to, n);
  store(to, v, tail(head));
  int64_t i = head;
  for (; i + L <= n; i += L) stream(to + i, v);
  if (i < n) store(to + i, v, tail(n - i));
  _mm_sfence();
}

void zero_bytes(std::byte* to, int64_t bytes, bool streamed) {
  if (!streamed || reinterpret_cast<uintptr_t>(to) % 4) {
    if (bytes) std::memset(to, 0, size_t(bytes));
    return;
  }
  fill(floats(to), 0, bytes / 4, true);
  for (int64_t i = bytes / 4 * 4; i < bytes; ++i) to[i] = std::byte{0};
}

/// 64 rows at a time, so that a column of tiles writes 256 bytes of each line of y.
template <bool kStream>
MP_INLINE void transpose_by(const float* x, int64_t x_step, float* y, int64_t y_step, int64_t rows, int64_t cols) {
  auto put = [](float* p, V v) __attribute__((always_inline)) { kStream ? stream(p, v) : store(p, v); };
  auto same = [](V v) __attribute__((always_inline)) { return v; };
  for (int64_t i0 = 0; i0 < rows; i0 += 64) {
    const int64_t i1 = rows < i0 + 64 ? rows : i0 + 64;
    for (int64_t j = 0; j < cols; j += L)
      for (int64_t i = i0; i < i1; i += L)
        turn_tile<false>(x + i * x_step + j, x_step, y + j * y_step + i, y_step, i1 - i < L ? i1 - i : L,
                         cols - j < L ? cols - j : L, put, same);
  }
  if (kStream) _mm_sfence();
}
void transpose(const float* x, int64_t x_step, float* y, int64_t y_step, int64_t rows, int64_t cols, bool streamed) {
  if (streamed && reinterpret_cast<uintptr_t>(y) % sizeof(V) == 0 && y_step % L == 0)
    transpose_by<true>(x, x_step, y, y_step, rows, cols);
  else
    transpose_by<false>(x, x_step, y, y_step, rows, cols);
}

void gather(const std::byte* table, int64_t count, int64_t bytes, Labels index, int64_t n, std::byte* to) {
  const int64_t floats_each = bytes / 4;
  for (int64_t i = 0; i < n; ++i, to += bytes) {
    const std::byte* const from = table + label_below(index, i, count) * bytes;
    if (i + 1 < n) {
      const std::byte* const next = table + label_below(index, i + 1, count) * bytes;
      for (int64_t k = 0; k < bytes && k < 512; k += 64)
        _mm_prefetch(reinterpret_cast<const char*>(next + k), _MM_HINT_T0);
    }
    if (bytes % 4) {
      std::memcpy(to, from, size_t(bytes));
    } else if (floats_each < L) {
      const Tail t = tail(floats_each);
      store(floats(to), load(floats(from), t), t);
    } else {
      copy_long(floats(from), floats(to), floats_each);
    }
  }
}

void scatter(float* table, int64_t count, int64_t width, int64_t begin, int64_t end, int64_t first, int64_t last,
             Labels index, const float* rows, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t k = label_below(index, i, count);
    if (k < begin || k >= end) continue;
    float* const to = table + k * width + first;
    const float* const from = rows + i * width + first;
    each_vector(last - first, [&](int64_t c, auto t) __attribute__((always_inline)) {
      store(to + c, add(load(to + c, t), load(from + c, t)), t);
    });
  }
}

}  // namespace

extern const CopyKernels copy_kernels;
const CopyKernels copy_kernels = {copy, fill, zero_bytes, transpose, gather, scatter};

}  // namespace millpond::backend::cpu::MP_ISA
