#include "ops/argmax.h"

#include "backend/cpu/row_kernels.h"
#include "backend/cpu/rows.h"
#include "backend/cpu/slow.h"

namespace millpond::backend::cpu {

std::unique_ptr<Kernel> argmax(const ops::ArgMax& op, const Request& request) {
  if (!all_float(request.inputs)) return slow(op, request);
  const Matrix x(request.inputs[0].shape);
  return in_runs(Runs(x.rows, 6 + byte_time(4.0 * double(x.cols))),
                 [cols = x.cols, f = row_kernels().argmax](const Arguments& a, int64_t begin, int64_t end) {
                   f(a.input<float>(0) + begin * cols, a.output<int32_t>(0) + begin, end - begin, cols);
                 });
}

}  // namespace millpond::backend::cpu
