#include "ops/one_hot.h"
#include "backend/reference/types.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> one_hot(const ops::OneHot& op, const Request& request) {
  const int64_t n = request.inputs[0].shape.size();
  return with_type(op.dtype, [&]<class T>() {
    return loop([n, depth = op.depth, labels = request.inputs[0].dtype](const Arguments& a) {
      for (int64_t i = 0; i < n; ++i)
        for (int64_t c = 0; c < depth; ++c)
          store(a.output<T>(0), i * depth + c, integer(a.in[0], labels, i) == c ? int64_t{1} : int64_t{0});
    });
  });
}

}  // namespace millpond::backend::reference
