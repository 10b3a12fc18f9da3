#include "ops/softmax_cross_entropy.h"

#include "backend/cpu/row_kernels.h"
#include "backend/cpu/rows.h"
#include "backend/cpu/slow.h"

namespace millpond::backend::cpu {

std::unique_ptr<Kernel> softmax_cross_entropy(const ops::SoftmaxCrossEntropy& op, const Request& request) {
  if (request.inputs[0].dtype != DType::kFloat32) return slow(op, request);
  const Matrix z(request.inputs[0].shape);
  return in_runs(Runs(z.rows, 8 + 0.25 * double(z.cols)), [cols = z.cols, t = request.inputs[1].dtype,
                                                           f = row_kernels().cross_entropy](
                                                              const Arguments& a, int64_t begin, int64_t end) {
    f(a.input<float>(0) + begin * cols, labels(a, 1, t, begin), a.output<float>(0) + begin, end - begin, cols);
  });
}

}  // namespace millpond::backend::cpu
