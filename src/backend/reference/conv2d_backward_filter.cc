#include "ops/conv2d_backward_filter.h"
#include "backend/reference/types.h"
#include "backend/reference/window.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> conv2d_backward_filter(const ops::Conv2DBackwardFilter& op, const Request& request) {
  const Geometry g(op.window, request.inputs[0].shape, request.inputs[1].shape);
  const Filter f(op.filter, op.groups);
  const int64_t size = op.filter.size();
  return with_floating(request.inputs[0].dtype, [&]<class T>() {
    return loop(
        [=](const Arguments& a) {
          double* total = reinterpret_cast<double*>(a.scratch);
          std::fill(total, total + size, 0.0);
          g.each_output([&](int64_t b, int64_t i, int64_t j, int64_t o) {
            const double dy = double(load(a.input<T>(1), g.y_at(b, i, j, o)));
            g.taps(i, j, [&](int64_t p, int64_t q, int64_t h, int64_t v) {
              for (int64_t c = 0; c < f.in; ++c)
                total[f.at(p, q, c, o)] += double(load(a.input<T>(0), g.x_at(b, h, v, f.first_channel(o) + c))) * dy;
            });
          });
          for (int64_t k = 0; k < size; ++k) store(a.output<T>(0), k, total[k]);
        },
        Bytes{size * int64_t(sizeof(double))});
  });
}

}  // namespace millpond::backend::reference
