#include "ops/average_pool2d.h"
#include "backend/reference/types.h"
#include "backend/reference/window.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> average_pool2d(const ops::AveragePool2D& op, const Request& request) {
  const Geometry g(op.window, request.inputs[0].shape, request.outputs[0].shape);
  return with_floating(request.inputs[0].dtype, [&]<class T>() {
    return loop([=](const Arguments& a) {
      g.each_output([&](int64_t b, int64_t i, int64_t j, int64_t c) {
        double total = 0;
        int64_t count = 0;
        g.taps(i, j, [&](int64_t, int64_t, int64_t h, int64_t v) {
          total += double(load(a.input<T>(0), g.x_at(b, h, v, c))), ++count;
        });
        store(a.output<T>(0), g.y_at(b, i, j, c), total / double(std::max<int64_t>(1, count)));
      });
    });
  });
}

}  // namespace millpond::backend::reference
