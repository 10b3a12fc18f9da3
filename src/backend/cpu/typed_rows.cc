#include "backend/cpu/typed_rows.h"

#include "backend/cpu/stored_lanes.h"

namespace millpond::backend::cpu::MP_ISA {
namespace {

template <class T>
struct Gathered {
  using Type = double;
};
template <>
struct Gathered<int32_t> {
  using Type = int64_t;
};
template <>
struct Gathered<int64_t> {
  using Type = int64_t;
};
template <>
struct Gathered<uint64_t> {
  using Type = uint64_t;
};
template <class T>
using Acc = typename Gathered<T>::Type;

struct Sum {
  static MP_INLINE double take(double acc, double v) { return acc + v; }
  static MP_INLINE float take(float acc, float v) { return acc + v; }
  static MP_INLINE int64_t take(int64_t acc, int64_t v) { return int64_t(uint64_t(acc) + uint64_t(v)); }
  static MP_INLINE uint64_t take(uint64_t acc, uint64_t v) { return acc + v; }
};
struct Max {
  template <class T>
  static MP_INLINE T take(T acc, T v) {
    return v > acc || v != v ? v : acc;  // a NaN stays: nothing is larger
  }
};

// Floats are gathered in floats for a piece of some thousands, then in a double; 32 chains hide the latency.
template <class R, class T>
void all(const void* x, int64_t n, void* acc) {
  constexpr int kChains = 32;
  constexpr int64_t kPiece = 4096;
  const T* p = static_cast<const T*>(x);
  Acc<T>& total = *static_cast<Acc<T>*>(acc);
  for (int64_t at = 0; at < n; at += kPiece) {
    const T* q = p + at;
    const int64_t m = n - at < kPiece ? n - at : kPiece;
    if constexpr (T(0.5) == T(0)) {
      Acc<T> t = total;
      for (int64_t i = 0; i < m; ++i) t = R::take(t, Acc<T>(q[i]));
      total = t;
    } else if (m < kChains) {
      for (int64_t i = 0; i < m; ++i) total = R::take(total, Acc<T>(q[i]));
    } else {
      T t[kChains];
      for (int k = 0; k < kChains; ++k) t[k] = q[k];
      int64_t i = kChains;
      for (; i + kChains <= m; i += kChains)
        for (int k = 0; k < kChains; ++k) t[k] = R::take(t[k], q[i + k]);
      for (int k = 0; i < m; ++i, ++k) t[k] = R::take(t[k], q[i]);
      for (int k = 0; k < kChains; ++k) total = R::take(total, Acc<T>(t[k]));
    }
  }
}
template <class R, class T>
void each(const void* x, int64_t n, void* acc) {
  const T* p = static_cast<const T*>(x);
  Acc<T>* a = static_cast<Acc<T>*>(acc);
  MP_IVDEP for (int64_t i = 0; i < n; ++i) a[i] = R::take(a[i], Acc<T>(p[i]));
}

template <class T>
void widen_as(const void* from, void* to, int64_t n) {
  widen<T>(static_cast<const T*>(from), static_cast<Lane<T>*>(to), n);
}
template <class T>
MP_INLINE T plus(T x, T y) {
  return x + y;
}
MP_INLINE int32_t plus(int32_t x, int32_t y) { return int32_t(uint32_t(x) + uint32_t(y)); }
MP_INLINE int64_t plus(int64_t x, int64_t y) { return int64_t(uint64_t(x) + uint64_t(y)); }
template <class T>
void add_as(const void* from, void* to, int64_t n) {
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  MP_IVDEP for (int64_t i = 0; i < n; ++i) y[i] = narrowed<T>(plus(widened(y[i]), widened(x[i])));
}

void (*widen_of(Stored type))(const void*, void*, int64_t) {
  switch (type) {
    case Stored::kBFloat16:
      return widen_as<BFloat>;
    case Stored::kFloat16:
      return widen_as<Half>;
    case Stored::kInt8:
      return widen_as<int8_t>;
    case Stored::kInt16:
      return widen_as<int16_t>;
    case Stored::kUInt8:
      return widen_as<uint8_t>;
    case Stored::kUInt16:
      return widen_as<uint16_t>;
    case Stored::kUInt32:
      return widen_as<uint32_t>;
    case Stored::kBool:
      return widen_as<Truth>;
    default:
      return nullptr;
  }
}
void (*add_of(Stored type))(const void*, void*, int64_t) {
  switch (type) {
    case Stored::kFloat64:
      return add_as<double>;
    case Stored::kBFloat16:
      return add_as<BFloat>;
    case Stored::kFloat16:
      return add_as<Half>;
    case Stored::kInt8:
    case Stored::kUInt8:  // the low bits of a sum do not know of signs
      return add_as<uint8_t>;
    case Stored::kInt16:
    case Stored::kUInt16:
      return add_as<uint16_t>;
    case Stored::kInt32:
    case Stored::kUInt32:
      return add_as<int32_t>;
    case Stored::kInt64:
    case Stored::kUInt64:
      return add_as<int64_t>;
    case Stored::kFloat32:
      return add_as<float>;
    case Stored::kBool:
      break;
  }
  return nullptr;
}

// Squares of a line of cache each way: both sides stay in L1.
template <class T>
void turn(const void* x, int64_t x_step, void* y, int64_t y_step, int64_t rows, int64_t cols) {
  constexpr int64_t kSide = 64 / int64_t(sizeof(T)) < 16 ? 16 : 64 / int64_t(sizeof(T));
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(y);
  for (int64_t j0 = 0; j0 < cols; j0 += kSide)
    for (int64_t i0 = 0; i0 < rows; i0 += kSide) {
      const int64_t j1 = cols < j0 + kSide ? cols : j0 + kSide, i1 = rows < i0 + kSide ? rows : i0 + kSide;
      for (int64_t j = j0; j < j1; ++j)
        for (int64_t i = i0; i < i1; ++i) to[j * y_step + i] = from[i * x_step + j];
    }
}
void (*turn_of(int bytes))(const void*, int64_t, void*, int64_t, int64_t, int64_t) {
  return bytes == 1 ? turn<uint8_t> : bytes == 2 ? turn<uint16_t> : bytes == 4 ? turn<uint32_t> : turn<uint64_t>;
}

template <class T>
void pack_as(const void* x, int64_t row, int64_t col, int64_t rows, int64_t n, void* out) {
  const T* from = static_cast<const T*>(x);
  Lane<T>* to = static_cast<Lane<T>*>(out);
  if (col == 1) {
    for (int64_t k = 0; k < rows; ++k) widen<T>(from + k * row, to + k * n, n);
    return;
  }
  // columns lie together: squares, so that both sides stay in L1
  constexpr int64_t kSide = 16;
  for (int64_t k0 = 0; k0 < rows; k0 += kSide)
    for (int64_t j0 = 0; j0 < n; j0 += kSide)
      for (int64_t k = k0; k < (rows < k0 + kSide ? rows : k0 + kSide); ++k)
        for (int64_t j = j0; j < (n < j0 + kSide ? n : j0 + kSide); ++j)
          to[k * n + j] = widened(from[k * row + j * col]);
}
void (*pack_of(Stored type))(const void*, int64_t, int64_t, int64_t, int64_t, void*) {
  return type == Stored::kFloat64 ? pack_as<double> : type == Stored::kFloat16 ? pack_as<Half> : pack_as<BFloat>;
}
void pack_rows(const uint16_t* x, int64_t row, int64_t col, int64_t rows, int64_t n, uint16_t* out) {
  const int64_t width = n + n % 2;
  for (int64_t k = 0; k < rows; ++k) {
    for (int64_t j = 0; j < n; ++j) out[k * width + j] = x[k * row + j * col];
    if (n % 2) out[k * width + n] = 0;
  }
}
void pack_pairs(const uint16_t* x, int64_t row, int64_t col, int64_t rows, int64_t n, uint16_t* out) {
  for (int64_t k = 0; k < rows; k += 2, out += 2 * n) {
    const uint16_t *first = x + k * row, *second = first + row;
    if (k + 1 == rows)
      for (int64_t j = 0; j < n; ++j) out[2 * j] = first[j * col], out[2 * j + 1] = 0;
    else if (col == 1)
      for (int64_t j = 0; j < n; ++j) out[2 * j] = first[j], out[2 * j + 1] = second[j];
    else
      for (int64_t j = 0; j < n; ++j) out[2 * j] = first[j * col], out[2 * j + 1] = second[j * col];
  }
}

template <class R, class T>
constexpr LaneReduction reduction() {
  return {all<R, T>, each<R, T>};
}

}  // namespace

extern const TypedRows typed_rows;
const TypedRows typed_rows = {
    {reduction<Sum, float>(), reduction<Sum, double>(), reduction<Sum, int32_t>(), reduction<Sum, int64_t>(),
     reduction<Sum, uint64_t>()},
    {reduction<Max, float>(), reduction<Max, double>(), reduction<Max, int32_t>(), reduction<Max, int64_t>(),
     reduction<Max, uint64_t>()},
    widen_of,
    add_of,
    turn_of,
    pack_of,
    pack_rows,
    pack_pairs,
};

}  // namespace millpond::backend::cpu::MP_ISA
