#include "ops/argmax.h"
#include "backend/reference/types.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> argmax(const ops::ArgMax&, const Request& request) {
  const int64_t rows = rows_of(request.inputs[0].shape), cols = cols_of(request.inputs[0].shape);
  return with_type(request.inputs[0].dtype, [&]<class T>() {
    return loop([=](const Arguments& a) {
      for (int64_t r = 0; r < rows; ++r) {
        const T* x = a.input<T>(0) + r * cols;
        int64_t best = 0;
        for (int64_t c = 1; c < cols; ++c)
          if (load(x, c) > load(x, best)) best = c;
        a.output<int32_t>(0)[r] = int32_t(best);
      }
    });
  });
}

}  // namespace millpond::backend::reference
