// expect_range: whole numbers that name rows and classes are looked at before a kernel follows them.
#pragma once
#include <utility>

#include "base/convert.h"
#include "base/with_type.h"
#include "eager/tensor.h"

namespace millpond::eager {

/// Throws refuse(value) for the first value that does not lie in [low, high). Waits for the values.
template <class Refuse>
void expect_range(const TensorImpl& t, int64_t low, int64_t high, Refuse&& refuse) {
  const Tensor host = [&] {
    Tensor copy(t.type.dtype, t.type.shape, "eager/looked_at");
    read(t, copy.data());
    return copy;
  }();
  with_type(t.type.dtype, [&]<class T>() {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      for (const T v : host.values<T>())
        if (std::cmp_less(v, low) || std::cmp_greater_equal(v, high)) throw refuse(int64_t(v));
  });
}

}  // namespace millpond::eager
