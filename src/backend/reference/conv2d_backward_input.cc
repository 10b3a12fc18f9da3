#include "ops/conv2d_backward_input.h"
#include "backend/reference/types.h"
#include "backend/reference/window.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> conv2d_backward_input(const ops::Conv2DBackwardInput& op, const Request& request) {
  const Geometry g(op.window, op.input, request.inputs[0].shape);
  const Filter f(request.inputs[1].shape, op.groups);
  return with_floating(request.inputs[0].dtype, [&]<class T>() {
    return loop([=](const Arguments& a) {
      g.each_input([&](int64_t b, int64_t h, int64_t v, int64_t c) {
        const int64_t group = c / f.in;
        double total = 0;
        g.readers(h, v, [&](int64_t p, int64_t q, int64_t i, int64_t j) {
          for (int64_t o = group * f.out_of_group; o < (group + 1) * f.out_of_group; ++o)
            total += double(load(a.input<T>(0), g.y_at(b, i, j, o))) *
                     double(load(a.input<T>(1), f.at(p, q, c - group * f.in, o)));
        });
        store(a.output<T>(0), g.x_at(b, h, v, c), total);
      });
    });
  });
}

}  // namespace millpond::backend::reference
