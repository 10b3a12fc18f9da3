#include "ops/argmax.h"

#include "backend/cpu/row_kernels.h"
#include "backend/cpu/rows.h"
#include "backend/cpu/slow.h"
#include "base/convert.h"
#include "base/with_type.h"

namespace millpond::backend::cpu {

std::unique_ptr<Kernel> argmax(const ops::ArgMax&, const Request& request) {
  const Matrix x(request.inputs[0].shape);
  if (!all_float(request.inputs))
    return with_type(request.inputs[0].dtype, [&]<class T>() {
      return in_runs(Runs(x.rows, 6 + 0.5 * double(x.cols)),
                     [cols = x.cols](const Arguments& a, int64_t begin, int64_t end) {
                       for (int64_t r = begin; r < end; ++r) {
                         const T* v = a.input<T>(0) + r * cols;
                         int64_t best = 0;
                         for (int64_t c = 1; c < cols; ++c)
                           if (load(v, c) > load(v, best)) best = c;
                         a.output<int32_t>(0)[r] = int32_t(best);
                       }
                     });
    });
  return in_runs(Runs(x.rows, 6 + byte_time(4.0 * double(x.cols))),
                 [cols = x.cols, f = row_kernels().argmax](const Arguments& a, int64_t begin, int64_t end) {
                   f(a.input<float>(0) + begin * cols, a.output<int32_t>(0) + begin, end - begin, cols);
                 });
}

}  // namespace millpond::backend::cpu
