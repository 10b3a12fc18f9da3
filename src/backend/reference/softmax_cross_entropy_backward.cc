#include "ops/softmax_cross_entropy_backward.h"
#include "backend/reference/rows.h"
#include "backend/reference/types.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> softmax_cross_entropy_backward(const ops::SoftmaxCrossEntropyBackward&,
                                                       const Request& request) {
  const int64_t rows = rows_of(request.inputs[0].shape), classes = cols_of(request.inputs[0].shape);
  return with_floating(request.inputs[0].dtype, [&]<class T>() {
    return loop([=, labels = request.inputs[1].dtype](const Arguments& a) {
      for (int64_t r = 0; r < rows; ++r) {
        const T* z = a.input<T>(0) + r * classes;
        const LogSum s = log_sum_exp(z, classes);
        const int64_t label = std::clamp<int64_t>(integer(a.in[1], labels, r), 0, classes - 1);
        const double dloss = double(load(a.input<T>(2), r));
        for (int64_t c = 0; c < classes; ++c)
          store(a.output<T>(0) + r * classes, c,
                (std::exp(double(load(z, c)) - s.largest) / s.sum - (c == label ? 1 : 0)) * dloss);
      }
    });
  });
}

}  // namespace millpond::backend::reference
