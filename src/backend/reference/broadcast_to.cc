#include "ops/broadcast_to.h"
#include "backend/reference/types.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> broadcast_to(const ops::BroadcastTo& op, const Request& request) {
  const std::array strides{broadcast_strides(request.inputs[0].shape, op.shape), row_major(op.shape)};
  return with_size(request.inputs[0].dtype, [&]<class T>() {
    return loop([strides, y = op.shape](const Arguments& a) {
      walk(y, strides, [&](const auto& at) { a.output<T>(0)[at[1]] = a.input<T>(0)[at[0]]; });
    });
  });
}

}  // namespace millpond::backend::reference
