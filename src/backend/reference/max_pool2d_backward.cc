#include "backend/reference/types.h"
#include "backend/reference/window.h"
#include "ops/max_pool2d_backward.h"

namespace millpond::backend::reference {

// The winner is sought in x again; y, which would say its value, is not needed here.
std::unique_ptr<Kernel> max_pool2d_backward(const ops::MaxPool2DBackward& op, const Request& request) {
  const Geometry g(op.window, request.inputs[0].shape, request.inputs[1].shape);
  return with_floating(request.inputs[0].dtype, [&]<class T>() {
    return loop([=](const Arguments& a) {
      const T* x = a.input<T>(0);
      g.each_input([&](int64_t b, int64_t h, int64_t v, int64_t c) {
        double total = 0;
        g.readers(h, v, [&](int64_t, int64_t, int64_t i, int64_t j) {
          int64_t winner = -1;
          g.taps(i, j, [&](int64_t, int64_t, int64_t hh, int64_t vv) {
            const int64_t at = g.x_at(b, hh, vv, c);
            if (winner < 0 || load(x, at) > load(x, winner)) winner = at;
          });
          if (winner == g.x_at(b, h, v, c)) total += double(load(a.input<T>(2), g.y_at(b, i, j, c)));
        });
        store(a.output<T>(0), g.x_at(b, h, v, c), total);
      });
    });
  });
}

}  // namespace millpond::backend::reference
