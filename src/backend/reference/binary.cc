#include "ops/binary.h"
#include "backend/reference/types.h"
#include "ops/apply.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> binary(const ops::Binary& op, const Request& request) {
  const Shape z = request.outputs[0].shape;
  const std::array strides{broadcast_strides(request.inputs[0].shape, z), broadcast_strides(request.inputs[1].shape, z),
                           row_major(z)};
  return with_type(request.inputs[0].dtype, [&]<class T>() {
    return loop([=, f = op.function](const Arguments& a) {
      walk(z, strides, [&](const auto& at) {
        const Number<T> v = ops::apply<Number<T>>(f, load(a.input<T>(0), at[0]), load(a.input<T>(1), at[1]));
        if (is_compare(f))
          store(a.output<bool>(0), at[2], v);
        else
          store(a.output<T>(0), at[2], v);
      });
    });
  });
}

}  // namespace millpond::backend::reference
