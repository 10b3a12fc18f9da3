#include "ops/max_pool2d.h"
#include "backend/reference/types.h"
#include "backend/reference/window.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> max_pool2d(const ops::MaxPool2D& op, const Request& request) {
  const Geometry g(op.window, request.inputs[0].shape, request.outputs[0].shape);
  const bool few = op.winner_dtype() == DType::kUInt8;
  return with_floating(request.inputs[0].dtype, [&]<class T>() {
    return loop([=](const Arguments& a) {
      g.each_output([&](int64_t b, int64_t i, int64_t j, int64_t c) {
        Number<T> best = -std::numeric_limits<Number<T>>::infinity();
        int64_t winner = -1;
        g.taps(i, j, [&](int64_t p, int64_t q, int64_t h, int64_t v) {
          const Number<T> x = load(a.input<T>(0), g.x_at(b, h, v, c));
          if (winner < 0 || x > best || x != x) best = x, winner = p * g.window.width + q;
        });
        const int64_t at = g.y_at(b, i, j, c);
        store(a.output<T>(0), at, best);
        if (few)
          a.output<uint8_t>(1)[at] = uint8_t(winner);
        else
          a.output<int32_t>(1)[at] = int32_t(winner);
      });
    });
  });
}

}  // namespace millpond::backend::reference
