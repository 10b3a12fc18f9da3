#include "ops/transpose.h"
#include "backend/reference/types.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> transpose(const ops::Transpose& op, const Request& request) {
  const Shape y = request.outputs[0].shape;
  const Strides own = row_major(request.inputs[0].shape);
  Strides from{};
  for (size_t i = 0; i < op.order.size(); ++i) from[i] = own[op.order[i]];
  return with_size(request.inputs[0].dtype, [&]<class T>() {
    return loop([=, strides = std::array{from, row_major(y)}](const Arguments& a) {
      walk(y, strides, [&](const auto& at) { a.output<T>(0)[at[1]] = a.input<T>(0)[at[0]]; });
    });
  });
}

}  // namespace millpond::backend::reference
