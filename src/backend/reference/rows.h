// rows: softmax's maximum and sum of exponentials of one row.
#pragma once
#include "backend/reference/types.h"

namespace millpond::backend::reference {

struct LogSum {
  double largest = -INFINITY, sum = 0;  // sum of exp(x - largest)
  double value() const { return largest + std::log(sum); }
};
template <class T>
LogSum log_sum_exp(const T* x, int64_t n) {
  LogSum s;
  for (int64_t i = 0; i < n; ++i) s.largest = std::max(s.largest, double(load(x, i)));
  for (int64_t i = 0; i < n; ++i) s.sum += std::exp(double(load(x, i)) - s.largest);
  return s;
}

}  // namespace millpond::backend::reference
