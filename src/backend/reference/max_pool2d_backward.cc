#include "ops/max_pool2d_backward.h"
#include "backend/reference/types.h"
#include "backend/reference/window.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> max_pool2d_backward(const ops::MaxPool2DBackward& op, const Request& request) {
  const Geometry g(op.window, op.shape, request.inputs[0].shape);
  const DType winners = request.inputs[0].dtype;
  return with_floating(request.inputs[1].dtype, [&]<class T>() {
    return loop([=](const Arguments& a) {
      g.each_input([&](int64_t b, int64_t h, int64_t v, int64_t c) {
        double total = 0;
        g.readers(h, v, [&](int64_t p, int64_t q, int64_t i, int64_t j) {
          const int64_t at = g.y_at(b, i, j, c);
          if (integer(a.in[0], winners, at) == p * g.window.width + q) total += double(load(a.input<T>(1), at));
        });
        store(a.output<T>(0), g.x_at(b, h, v, c), total);
      });
    });
  });
}

}  // namespace millpond::backend::reference
