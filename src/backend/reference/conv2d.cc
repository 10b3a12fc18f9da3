#include "ops/conv2d.h"
#include "backend/reference/expression.h"
#include "backend/reference/types.h"
#include "backend/reference/window.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> conv2d(const ops::Conv2D& op, const Request& request) {
  const Shape y = op.product(request.inputs[0], request.inputs[1]).shape;
  const Geometry g(op.window, request.inputs[0].shape, y);
  const Filter f(request.inputs[1].shape, op.groups);
  const bool plain = op.epilogue.empty();
  const Interpreter epilogue = plain ? Interpreter({}, 0, 0, 0, {}, {})
                                     : Interpreter(op.epilogue, 1, rows_of(y), cols_of(y),
                                                   std::span(request.inputs).subspan(2), request.outputs);
  return with_floating(request.inputs[0].dtype, [&]<class T>() {
    return loop(
        [=](const Arguments& a) {
          epilogue.begin(a.scratch);
          g.each_output([&](int64_t b, int64_t i, int64_t j, int64_t o) {
            double total = 0;
            g.taps(i, j, [&](int64_t p, int64_t q, int64_t h, int64_t v) {
              for (int64_t c = 0; c < f.in; ++c)
                total += double(load(a.input<T>(0), g.x_at(b, h, v, f.first_channel(o) + c))) *
                         double(load(a.input<T>(1), f.at(p, q, c, o)));
            });
            if (plain)
              store(a.output<T>(0), g.y_at(b, i, j, o), total);
            else
              epilogue.at(g.y_at(b, i, j, 0) / g.out, o, total, a.in + 2, a.out, a.scratch);
          });
          epilogue.end(a.out, a.scratch);
        },
        epilogue.workspace());
  });
}

}  // namespace millpond::backend::reference
