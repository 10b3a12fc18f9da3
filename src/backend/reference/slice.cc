#include "ops/slice.h"
#include "backend/reference/types.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> slice(const ops::Slice& op, const Request& request) {
  const Strides from = row_major(request.inputs[0].shape);
  int64_t start = 0;
  for (int i = 0; i < op.sizes.rank(); ++i) start += op.starts[i] * from[i];
  return with_size(request.inputs[0].dtype, [&]<class T>() {
    return loop([=, y = op.sizes, strides = std::array{from, row_major(op.sizes)}](const Arguments& a) {
      walk(y, strides, [&](const auto& at) { a.output<T>(0)[at[1]] = a.input<T>(0)[start + at[0]]; });
    });
  });
}

}  // namespace millpond::backend::reference
