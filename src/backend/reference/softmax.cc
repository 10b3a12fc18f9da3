#include "ops/softmax.h"
#include "backend/reference/rows.h"
#include "backend/reference/types.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> softmax(const ops::Softmax&, const Request& request) {
  const int64_t rows = rows_of(request.inputs[0].shape), cols = cols_of(request.inputs[0].shape);
  return with_floating(request.inputs[0].dtype, [&]<class T>() {
    return loop([=](const Arguments& a) {
      for (int64_t r = 0; r < rows; ++r) {
        const T* x = a.input<T>(0) + r * cols;
        const LogSum s = log_sum_exp(x, cols);
        for (int64_t c = 0; c < cols; ++c)
          store(a.output<T>(0) + r * cols, c, std::exp(double(load(x, c)) - s.largest) / s.sum);
      }
    });
  });
}

}  // namespace millpond::backend::reference
