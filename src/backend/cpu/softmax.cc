#include "ops/softmax.h"

#include "backend/cpu/row_kernels.h"
#include "backend/cpu/rows.h"
#include "backend/cpu/slow.h"

namespace millpond::backend::cpu {

std::unique_ptr<Kernel> softmax(const ops::Softmax& op, const Request& request) {
  if (!all_float(request.inputs)) return slow(op, request);
  const Matrix x(request.inputs[0].shape);
  return in_runs(Runs(x.cols ? x.rows : 0, 8 + 0.3 * double(x.cols)),
                 [cols = x.cols, f = row_kernels().softmax](const Arguments& a, int64_t begin, int64_t end) {
                   f(a.input<float>(0) + begin * cols, a.output<float>(0) + begin * cols, end - begin, cols);
                 });
}

}  // namespace millpond::backend::cpu
