#include "ops/average_pool2d_backward.h"
#include "backend/reference/types.h"
#include "backend/reference/window.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> average_pool2d_backward(const ops::AveragePool2DBackward& op, const Request& request) {
  const Geometry g(op.window, op.input, request.inputs[0].shape);
  return with_floating(request.inputs[0].dtype, [&]<class T>() {
    return loop([=](const Arguments& a) {
      g.each_input([&](int64_t b, int64_t h, int64_t v, int64_t c) {
        double total = 0;
        g.readers(h, v, [&](int64_t, int64_t, int64_t i, int64_t j) {
          int64_t count = 0;
          g.taps(i, j, [&](int64_t, int64_t, int64_t, int64_t) { ++count; });
          total += double(load(a.input<T>(0), g.y_at(b, i, j, c))) / double(count);
        });
        store(a.output<T>(0), g.x_at(b, h, v, c), total);
      });
    });
  });
}

}  // namespace millpond::backend::reference
