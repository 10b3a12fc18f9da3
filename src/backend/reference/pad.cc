#include "ops/pad.h"
#include "backend/reference/types.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> pad(const ops::Pad& op, const Request& request) {
  const Shape x = request.inputs[0].shape;
  const int64_t size = request.outputs[0].shape.size();
  const Strides to = row_major(request.outputs[0].shape);
  int64_t start = 0;
  for (int i = 0; i < x.rank(); ++i) start += op.before[i] * to[i];
  return with_type(request.inputs[0].dtype, [&]<class T>() {
    return loop([=, value = op.value](const Arguments& a) {
      T* y = a.output<T>(0);
      std::fill(y, y + size, convert<T>(value));
      walk(x, std::array{row_major(x), to}, [&](const auto& at) { y[start + at[1]] = a.input<T>(0)[at[0]]; });
    });
  });
}

}  // namespace millpond::backend::reference
