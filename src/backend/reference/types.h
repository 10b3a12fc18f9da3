// types: what every reference kernel is written with: one number type for each dtype (base/convert.h), a wider one for
// its sums, loops over shapes, and a kernel made of one function. Plain on purpose: the formula should be all one sees
// in the other files.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "backend/host/kernel.h"
#include "base/assert.h"
#include "base/convert.h"
#include "base/with_type.h"

namespace millpond::backend::reference {

template <class T>
inline constexpr bool kFloating = kHalf<T> || std::is_floating_point_v<T>;

/// What T is summed in: double for every floating type, so that the slow twin is the exact one.
template <class T>
using Total = std::conditional_t<kFloating<T>, double, Number<T>>;

/// Element i of an array of whole numbers (labels, indices, counters). What no int64 holds is the largest one: all that
/// ask clamp it.
inline int64_t integer(const void* p, DType t, int64_t i) {
  return with_type(t, [&]<class T>() -> int64_t {
    if constexpr (kFloating<T>)
      return 0;
    else {
      const Number<T> v = load(static_cast<const T*>(p), i);
      return std::is_unsigned_v<Number<T>> && uint64_t(v) > uint64_t(INT64_MAX) ? INT64_MAX : int64_t(v);
    }
  });
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
