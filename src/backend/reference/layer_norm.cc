#include "ops/layer_norm.h"
#include "backend/reference/types.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> layer_norm(const ops::LayerNorm& op, const Request& request) {
  const int64_t rows = rows_of(request.inputs[0].shape), cols = cols_of(request.inputs[0].shape);
  return with_floating(request.inputs[0].dtype, [&]<class T>() {
    return loop([=, epsilon = op.epsilon](const Arguments& a) {
      for (int64_t r = 0; r < rows; ++r) {
        const T* x = a.input<T>(0) + r * cols;
        double mean = 0, variance = 0;
        for (int64_t c = 0; c < cols; ++c) mean += double(load(x, c)) / double(cols);
        for (int64_t c = 0; c < cols; ++c) variance += std::pow(double(load(x, c)) - mean, 2) / double(cols);
        const double rstd = 1 / std::sqrt(variance + epsilon);
        store(a.output<T>(1), r, mean);
        store(a.output<T>(2), r, rstd);
        for (int64_t c = 0; c < cols; ++c)
          store(a.output<T>(0) + r * cols, c,
                (double(load(x, c)) - mean) * rstd * double(load(a.input<T>(1), c)) + double(load(a.input<T>(2), c)));
      }
    });
  });
}

}  // namespace millpond::backend::reference
