#include "ops/softmax_cross_entropy.h"
#include "backend/reference/rows.h"
#include "backend/reference/types.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> softmax_cross_entropy(const ops::SoftmaxCrossEntropy&, const Request& request) {
  const int64_t rows = rows_of(request.inputs[0].shape), classes = cols_of(request.inputs[0].shape);
  return with_floating(request.inputs[0].dtype, [&]<class T>() {
    return loop([=, labels = request.inputs[1].dtype](const Arguments& a) {
      for (int64_t r = 0; r < rows; ++r) {
        const T* z = a.input<T>(0) + r * classes;
        const int64_t label = std::clamp<int64_t>(integer(a.in[1], labels, r), 0, classes - 1);
        store(a.output<T>(0), r, log_sum_exp(z, classes).value() - double(load(z, label)));
      }
    });
  });
}

}  // namespace millpond::backend::reference
