#include "ops/batch_norm.h"
#include "backend/reference/types.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> batch_norm(const ops::BatchNorm& op, const Request& request) {
  const int64_t rows = rows_of(request.inputs[0].shape), channels = cols_of(request.inputs[0].shape);
  return with_floating(request.inputs[0].dtype, [&]<class T>() {
    return loop([=, epsilon = op.epsilon](const Arguments& a) {
      const T* x = a.input<T>(0);
      for (int64_t c = 0; c < channels; ++c) {
        double mean = 0, variance = 0;
        for (int64_t r = 0; r < rows; ++r) mean += double(load(x, r * channels + c)) / double(rows);
        for (int64_t r = 0; r < rows; ++r)
          variance += std::pow(double(load(x, r * channels + c)) - mean, 2) / double(rows);
        store(a.output<T>(1), c, mean);
        store(a.output<T>(2), c, variance);
        const double scale = double(load(a.input<T>(1), c)) / std::sqrt(variance + epsilon);
        for (int64_t r = 0; r < rows; ++r)
          store(a.output<T>(0), r * channels + c,
                (double(load(x, r * channels + c)) - mean) * scale + double(load(a.input<T>(2), c)));
      }
    });
  });
}

}  // namespace millpond::backend::reference
