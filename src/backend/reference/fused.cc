#include "ops/fused.h"
#include "backend/reference/expression.h"
#include "backend/reference/types.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> fused(const ops::Fused& op, const Request& request) {
  const Interpreter body(op.expression, 0, op.rows, op.cols, request.inputs, request.outputs);
  return loop(
      [body, rows = op.rows, cols = op.cols](const Arguments& a) {
        body.begin(a.scratch);
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < cols; ++c) body.at(r, c, 0, a.in, a.out, a.scratch);
        body.end(a.out, a.scratch);
      },
      body.workspace());
}

}  // namespace millpond::backend::reference
