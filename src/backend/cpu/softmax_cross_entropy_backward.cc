#include "ops/softmax_cross_entropy_backward.h"

#include "backend/cpu/row_kernels.h"
#include "backend/cpu/rows.h"
#include "backend/cpu/slow.h"

namespace millpond::backend::cpu {

std::unique_ptr<Kernel> softmax_cross_entropy_backward(const ops::SoftmaxCrossEntropyBackward& op,
                                                       const Request& request) {
  if (request.inputs[0].dtype != DType::kFloat32) return slow(op, request);
  const Matrix z(request.inputs[0].shape);
  return in_runs(Runs(z.rows, 8 + 0.35 * double(z.cols)),
                 [cols = z.cols, t = request.inputs[1].dtype, f = row_kernels().cross_entropy_backward](
                     const Arguments& a, int64_t begin, int64_t end) {
                   f(a.input<float>(0) + begin * cols, labels(a, 1, t, begin), a.input<float>(2) + begin,
                     a.output<float>(0) + begin * cols, end - begin, cols);
                 });
}

}  // namespace millpond::backend::cpu
