#include "ops/unary.h"
#include "backend/reference/types.h"
#include "ops/apply.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> unary(const ops::Unary& op, const Request& request) {
  const int64_t n = request.outputs[0].shape.size();
  return with_type(request.outputs[0].dtype, [&]<class T>() {
    return loop([n, f = op.function](const Arguments& a) {
      for (int64_t i = 0; i < n; ++i) store(a.output<T>(0), i, ops::apply<Number<T>>(f, load(a.input<T>(0), i)));
    });
  });
}

}  // namespace millpond::backend::reference
