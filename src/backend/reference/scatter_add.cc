#include "ops/scatter_add.h"
#include "backend/reference/types.h"
#include "ops/apply.h"

namespace millpond::backend::reference {

// Sums are kept in the table itself, in its own type: a wider one would cost the table once more.
std::unique_ptr<Kernel> scatter_add(const ops::ScatterAdd& op, const Request& request) {
  const int64_t count = op.count, width = request.outputs[0].shape[1], n = request.inputs[0].shape.size();
  return with_type(request.outputs[0].dtype, [&]<class T>() {
    return loop([=, onto = op.onto, index = request.inputs[0].dtype](const Arguments& a) {
      T* table = a.output<T>(0);
      if (!onto)
        std::fill(table, table + count * width, T{});
      else if (a.input<T>(2) != table)
        std::copy(a.input<T>(2), a.input<T>(2) + count * width, table);
      for (int64_t i = 0; i < n; ++i) {
        T* row = table + std::clamp<int64_t>(integer(a.in[0], index, i), 0, count - 1) * width;
        for (int64_t c = 0; c < width; ++c)
          store(row, c, ops::arithmetic::plus(load(row, c), load(a.input<T>(1), i * width + c)));
      }
    });
  });
}

}  // namespace millpond::backend::reference
