#include "ops/matmul.h"
#include "backend/reference/expression.h"
#include "backend/reference/types.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> matmul(const ops::MatMul& op, const Request& request) {
  const Shape &x = request.inputs[0].shape, &y = request.inputs[1].shape;
  const Shape c = op.product(request.inputs[0], request.inputs[1]).shape;
  const int64_t rows = c[-2], cols = c[-1], inner = x[op.transpose_a ? -2 : -1];
  // where an element of a or b lies: one step along rows, one along columns
  const int64_t a_row = op.transpose_a ? 1 : inner, a_col = op.transpose_a ? rows : 1;
  const int64_t b_row = op.transpose_b ? 1 : cols, b_col = op.transpose_b ? inner : 1;
  const Shape batch = c.slice(0, c.rank() - 2);
  std::array strides{broadcast_strides(x.slice(0, x.rank() - 2), batch),
                     broadcast_strides(y.slice(0, y.rank() - 2), batch), row_major(batch)};
  for (int i = 0; i < batch.rank(); ++i) strides[0][i] *= rows * inner, strides[1][i] *= inner * cols;
  const bool plain = op.epilogue.empty();
  const Interpreter epilogue = plain ? Interpreter({}, 0, 0, 0, {}, {})
                                     : Interpreter(op.epilogue, 1, batch.size() * rows, cols,
                                                   std::span(request.inputs).subspan(2), request.outputs);
  return with_floating(request.inputs[0].dtype, [&]<class T>() {
    return loop(
        [=](const Arguments& a) {
          epilogue.begin(a.scratch);
          walk(batch, strides, [&](const auto& at) {
            for (int64_t i = 0; i < rows; ++i) {
              for (int64_t j = 0; j < cols; ++j) {
                double total = 0;
                for (int64_t k = 0; k < inner; ++k)
                  total += double(load(a.input<T>(0), at[0] + i * a_row + k * a_col)) *
                           double(load(a.input<T>(1), at[1] + k * b_row + j * b_col));
                const int64_t row = at[2] * rows + i;
                if (plain)
                  store(a.output<T>(0), row * cols + j, total);
                else
                  epilogue.at(row, j, total, a.in + 2, a.out, a.scratch);
              }
            }
          });
          epilogue.end(a.out, a.scratch);
        },
        epilogue.workspace());
  });
}

}  // namespace millpond::backend::reference
