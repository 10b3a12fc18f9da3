#include "ops/layer_norm.h"

#include "backend/cpu/row_kernels.h"
#include "backend/cpu/rows.h"
#include "backend/cpu/slow.h"

namespace millpond::backend::cpu {

std::unique_ptr<Kernel> layer_norm(const ops::LayerNorm& op, const Request& request) {
  const Matrix x(request.inputs[0].shape);
  if (!all_float(request.inputs) || x.cols == 0) return slow(op, request);
  const double each = 20 + byte_time(8.0 * double(x.cols));
  return in_runs(Runs(x.rows, each), [cols = x.cols, epsilon = float(op.epsilon), f = row_kernels().layer_norm](
                                         const Arguments& a, int64_t begin, int64_t end) {
    f(a.input<float>(0) + begin * cols, a.input<float>(1), a.input<float>(2), a.output<float>(0) + begin * cols,
      a.output<float>(1) + begin, a.output<float>(2) + begin, end - begin, cols, epsilon);
  });
}

}  // namespace millpond::backend::cpu
