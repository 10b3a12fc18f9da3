#include "ops/gather.h"
#include "backend/reference/types.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> gather(const ops::Gather&, const Request& request) {
  const int64_t count = request.inputs[0].shape[0], width = request.inputs[0].shape[1],
                n = request.inputs[1].shape.size();
  return with_size(request.inputs[0].dtype, [&]<class T>() {
    return loop([=, index = request.inputs[1].dtype](const Arguments& a) {
      for (int64_t i = 0; i < n; ++i) {
        const int64_t row = std::clamp<int64_t>(integer(a.in[1], index, i), 0, count - 1);
        for (int64_t c = 0; c < width; ++c) a.output<T>(0)[i * width + c] = a.input<T>(0)[row * width + c];
      }
    });
  });
}

}  // namespace millpond::backend::reference
