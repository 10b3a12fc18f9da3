#include "ops/layer_norm_backward.h"
#include "backend/reference/types.h"

namespace millpond::backend::reference {

// With h = (x - mean) rstd, g = dy gamma and m the mean over columns: dx = rstd (g - m(g) - h m(g h)); sums over rows:
// dgamma = sum dy h, dbeta = sum dy. They come first, for dx may lie over dy.
std::unique_ptr<Kernel> layer_norm_backward(const ops::LayerNormBackward&, const Request& request) {
  const int64_t rows = rows_of(request.inputs[0].shape), cols = cols_of(request.inputs[0].shape);
  return with_floating(request.inputs[0].dtype, [&]<class T>() {
    return loop([=](const Arguments& a) {
      const T *x = a.input<T>(0), *dy = a.input<T>(4);
      auto h = [&](int64_t r, int64_t c) {
        return (double(load(x, r * cols + c)) - double(load(a.input<T>(2), r))) * double(load(a.input<T>(3), r));
      };
      auto g = [&](int64_t r, int64_t c) { return double(load(dy, r * cols + c)) * double(load(a.input<T>(1), c)); };
      for (int64_t c = 0; c < cols; ++c) {
        double dgamma = 0, dbeta = 0;
        for (int64_t r = 0; r < rows; ++r)
          dgamma += double(load(dy, r * cols + c)) * h(r, c), dbeta += double(load(dy, r * cols + c));
        store(a.output<T>(1), c, dgamma);
        store(a.output<T>(2), c, dbeta);
      }
      for (int64_t r = 0; r < rows; ++r) {
        double mean_g = 0, mean_gh = 0;
        for (int64_t c = 0; c < cols; ++c)
          mean_g += g(r, c) / double(cols), mean_gh += g(r, c) * h(r, c) / double(cols);
        for (int64_t c = 0; c < cols; ++c)
          store(a.output<T>(0), r * cols + c, double(load(a.input<T>(3), r)) * (g(r, c) - mean_g - h(r, c) * mean_gh));
      }
    });
  });
}

}  // namespace millpond::backend::reference
