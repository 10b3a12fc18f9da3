#include "ops/row_scale.h"
#include "backend/reference/types.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> row_scale(const ops::RowScale&, const Request& request) {
  const int64_t rows = request.inputs[0].shape[0], cols = request.inputs[0].shape[1];
  return with_floating(request.inputs[0].dtype, [&]<class T>() {
    return loop([=](const Arguments& a) {
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < cols; ++c)
          store(a.output<T>(0), r * cols + c, load(a.input<T>(0), r * cols + c) * load(a.input<T>(1), c));
    });
  });
}

}  // namespace millpond::backend::reference
