#include "ops/cast.h"
#include "backend/reference/types.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> cast(const ops::Cast& op, const Request& request) {
  const int64_t n = request.outputs[0].shape.size();
  return with_type(request.inputs[0].dtype, [&]<class From>() {
    return with_type(op.dtype, [&]<class To>() {
      return loop([n](const Arguments& a) {
        for (int64_t i = 0; i < n; ++i) store(a.output<To>(0), i, load(a.input<From>(0), i));
      });
    });
  });
}

}  // namespace millpond::backend::reference
