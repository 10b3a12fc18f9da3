// types: what every reference kernel is written with: one number type for each dtype, a wider one for its sums, loops
// over shapes, and a kernel made of one function. Plain on purpose: the formula should be all one sees in the other
// files.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "backend/host/kernel.h"
#include "base/assert.h"
#include "base/half.h"

namespace millpond::backend::reference {

template <class T>
inline constexpr bool kHalf = std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>;
template <class T>
inline constexpr bool kFloating = kHalf<T> || std::is_floating_point_v<T>;

/// What T is computed in: half types in float, whole numbers in int64.
template <class T>
using Number = std::conditional_t<kHalf<T>, float, std::conditional_t<kFloating<T>, T, int64_t>>;
/// What T is summed in: double for every floating type, so that the slow twin is the exact one.
template <class T>
using Total = std::conditional_t<kFloating<T>, double, int64_t>;

template <class T>
Number<T> load(const T* p, int64_t i) {
  if constexpr (kHalf<T>)
    return to_float(p[i]);
  else if constexpr (std::is_same_v<T, bool>)
    return reinterpret_cast<const uint8_t*>(p)[i] != 0;  // a stranger's bool may be any byte
  else
    return Number<T>(p[i]);
}

/// v as a T: rounded to nearest; to whole numbers toward zero and to the nearest end when out of range, NaN to 0;
/// between whole numbers the low bits are kept.
template <class T, class V>
T convert(V v) {
  if constexpr (std::is_same_v<T, bool>)
    return v != V(0);
  else if constexpr (std::is_same_v<T, bfloat16>)
    return to_bfloat16(double(v));
  else if constexpr (std::is_same_v<T, float16>)
    return to_float16(double(v));
  else if constexpr (std::is_integral_v<T> && std::is_floating_point_v<V>) {
    if (v != v) return 0;
    if (v <= V(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    return v >= V(std::numeric_limits<T>::max()) ? std::numeric_limits<T>::max() : T(v);
  } else
    return T(v);
}
template <class T, class V>
void store(T* p, int64_t i, V v) {
  p[i] = convert<T>(v);
}

/// f.template operator()<T>() for the C++ type of `t`.
template <class F>
decltype(auto) with_type(DType t, F&& f) {
  switch (t) {
    case DType::kFloat32:
      return f.template operator()<float>();
    case DType::kFloat64:
      return f.template operator()<double>();
    case DType::kBFloat16:
      return f.template operator()<bfloat16>();
    case DType::kFloat16:
      return f.template operator()<float16>();
    case DType::kInt32:
      return f.template operator()<int32_t>();
    case DType::kInt64:
      return f.template operator()<int64_t>();
    case DType::kUInt8:
      return f.template operator()<uint8_t>();
    case DType::kBool:
      break;
  }
  return f.template operator()<bool>();
}
template <class F>
decltype(auto) with_floating(DType t, F&& f) {
  MP_ASSERT(is_floating(t));
  switch (t) {
    case DType::kFloat64:
      return f.template operator()<double>();
    case DType::kBFloat16:
      return f.template operator()<bfloat16>();
    case DType::kFloat16:
      return f.template operator()<float16>();
    default:
      return f.template operator()<float>();
  }
}

/// Element i of an array of whole numbers (labels, indices, counters).
inline int64_t integer(const void* p, DType t, int64_t i) {
  switch (t) {
    case DType::kInt64:
      return static_cast<const int64_t*>(p)[i];
    case DType::kInt32:
      return static_cast<const int32_t*>(p)[i];
    default:
      return static_cast<const uint8_t*>(p)[i];
  }
}

using Strides = std::array<int64_t, Shape::kMaxRank>;
inline Strides row_major(const Shape& s) {
  Strides strides{};
  int64_t step = 1;
  for (int i = s.rank(); i-- > 0; step *= s[i]) strides[i] = step;
  return strides;
}
/// Strides of `s` seen as the larger `full`: 0 along dimensions it repeats.
inline Strides broadcast_strides(const Shape& s, const Shape& full) {
  const Strides own = row_major(s);
  Strides strides{};
  for (int i = 1; i <= s.rank(); ++i) strides[full.rank() - i] = s[-i] == 1 ? 0 : own[s.rank() - i];
  return strides;
}

/// Calls f(offsets) for each place of `shape` in row-major order; offsets[k] follows strides[k].
template <size_t N, class F>
void walk(const Shape& shape, const std::array<Strides, N>& strides, F f) {
  if (shape.size() == 0) return;
  Strides at{};
  std::array<int64_t, N> offsets{};
  for (;;) {
    f(offsets);
    int d = shape.rank() - 1;
    for (; d >= 0; --d) {
      for (size_t k = 0; k < N; ++k) offsets[k] += strides[k][d];
      if (++at[d] < shape[d]) break;
      for (size_t k = 0; k < N; ++k) offsets[k] -= strides[k][d] * shape[d];
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

/// Rows and columns of a tensor seen as a matrix: columns are the last dimension.
inline int64_t cols_of(const Shape& s) { return s.rank() ? s.back() : 1; }
inline int64_t rows_of(const Shape& s) { return s.rank() ? s.without(-1).size() : 1; }

/// A kernel of one block: f(arguments).
template <class F>
class Loop final : public Kernel {
 public:
  Loop(F f, Bytes workspace) : f_(std::move(f)), workspace_(workspace) {}
  void run(const Arguments& a, int, int, int) const noexcept override { f_(a); }
  Bytes workspace() const override { return workspace_; }

 private:
  F f_;
  Bytes workspace_;
};
template <class F>
std::unique_ptr<Kernel> loop(F f, Bytes workspace = Bytes{0}) {
  return std::make_unique<Loop<F>>(std::move(f), workspace);
}

}  // namespace millpond::backend::reference
