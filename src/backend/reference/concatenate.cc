#include "ops/concatenate.h"
#include "backend/reference/types.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> concatenate(const ops::Concatenate& op, const Request& request) {
  const Strides to = row_major(request.outputs[0].shape);
  return with_size(request.outputs[0].dtype, [&]<class T>() {
    return loop([=, axis = op.axis, inputs = request.inputs](const Arguments& a) {
      int64_t start = 0;
      for (size_t k = 0; k < inputs.size(); ++k) {
        const Shape& x = inputs[k].shape;
        walk(x, std::array{row_major(x), to},
             [&](const auto& at) { a.output<T>(0)[start * to[axis] + at[1]] = a.input<T>(int(k))[at[0]]; });
        start += x[axis];
      }
    });
  });
}

}  // namespace millpond::backend::reference
