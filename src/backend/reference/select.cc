#include "ops/select.h"
#include "backend/reference/types.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> select(const ops::Select&, const Request& request) {
  const Shape z = request.outputs[0].shape;
  const std::array strides{broadcast_strides(request.inputs[0].shape, z), broadcast_strides(request.inputs[1].shape, z),
                           broadcast_strides(request.inputs[2].shape, z), row_major(z)};
  return with_size(request.outputs[0].dtype, [&]<class T>() {
    return loop([=](const Arguments& a) {
      walk(z, strides, [&](const auto& at) {
        a.output<T>(0)[at[3]] = load(a.input<bool>(0), at[0]) ? a.input<T>(1)[at[1]] : a.input<T>(2)[at[2]];
      });
    });
  });
}

}  // namespace millpond::backend::reference
