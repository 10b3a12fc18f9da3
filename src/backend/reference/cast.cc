#include "ops/cast.h"
#include "backend/reference/types.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> cast(const ops::Cast& op, const Request& request) {
  const int64_t n = request.outputs[0].shape.size();
  return loop([n, from = request.inputs[0].dtype, to = op.dtype](const Arguments& a) {
    convert(a.in[0], from, a.out[0], to, n);
  });
}

}  // namespace millpond::backend::reference
