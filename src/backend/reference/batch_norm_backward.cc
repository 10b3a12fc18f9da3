#include "ops/batch_norm_backward.h"
#include "backend/reference/types.h"

namespace millpond::backend::reference {

// With h = (x - mean) rstd and m the mean over rows: dx = gamma rstd (dy - m(dy) - h m(dy h)), dgamma = sum dy h, dbeta
// = sum dy.
std::unique_ptr<Kernel> batch_norm_backward(const ops::BatchNormBackward& op, const Request& request) {
  const int64_t rows = rows_of(request.inputs[0].shape), channels = cols_of(request.inputs[0].shape);
  return with_floating(request.inputs[0].dtype, [&]<class T>() {
    return loop([=, epsilon = op.epsilon](const Arguments& a) {
      const T *x = a.input<T>(0), *dy = a.input<T>(4);
      for (int64_t c = 0; c < channels; ++c) {
        const double mean = double(load(a.input<T>(2), c)),
                     rstd = 1 / std::sqrt(double(load(a.input<T>(3), c)) + epsilon);
        const double gamma = double(load(a.input<T>(1), c));
        double dgamma = 0, dbeta = 0;
        for (int64_t r = 0; r < rows; ++r) {
          const int64_t i = r * channels + c;
          dgamma += double(load(dy, i)) * (double(load(x, i)) - mean) * rstd;
          dbeta += double(load(dy, i));
        }
        for (int64_t r = 0; r < rows; ++r) {
          const int64_t i = r * channels + c;
          const double h = (double(load(x, i)) - mean) * rstd;
          store(a.output<T>(0), i,
                gamma * rstd * (double(load(dy, i)) - dbeta / double(rows) - h * dgamma / double(rows)));
        }
        store(a.output<T>(1), c, dgamma);
        store(a.output<T>(2), c, dbeta);
      }
    });
  });
}

}  // namespace millpond::backend::reference
