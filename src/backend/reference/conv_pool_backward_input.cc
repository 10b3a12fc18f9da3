#include "ops/conv_pool_backward_input.h"

#include "backend/reference/types.h"
#include "backend/reference/window.h"
#include "ops/conv_pool.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> conv_pool_backward_input(const ops::ConvPoolBackwardInput& op, const Request& request) {
  const Shape pooled = request.inputs[0].shape;
  const TensorType filter = request.inputs[1];
  const Shape y = ops::Conv2D(op.window).product({filter.dtype, op.input}, filter).shape;
  const Geometry g(op.window, op.input, y), cells(op.pool, y, pooled);
  const Filter f(filter.shape, 1);
  const int bits = ops::ConvPool(op.window, op.pool).winner_bits();
  const int64_t winner_bytes = request.inputs[2].shape.back();
  return with_floating(filter.dtype, [&]<class T>() {
    return loop([=](const Arguments& a) {
      const uint8_t* winners = a.input<uint8_t>(2);
      g.each_input([&](int64_t b, int64_t h, int64_t v, int64_t c) {
        double total = 0;
        g.readers(h, v, [&](int64_t p, int64_t q, int64_t i, int64_t j) {
          const int64_t row = i / cells.window.height, col = j / cells.window.width;
          if (row >= cells.out_height || col >= cells.out_width) return;  // left over by the pool
          const int64_t place = i % cells.window.height * cells.window.width + j % cells.window.width;
          const int64_t cell = cells.y_at(b, row, col, 0) / f.out;
          for (int64_t o = 0; o < f.out; ++o) {
            int64_t winner = 0;
            for (int bit = 0; bit < bits; ++bit)
              winner |= int64_t(winners[cell * winner_bytes + o / 16 * 2 * bits + 2 * bit + o % 16 / 8] >> o % 8 & 1)
                        << bit;
            if (winner == place)
              total += double(load(a.input<T>(0), cell * f.out + o)) * double(load(a.input<T>(1), f.at(p, q, c, o)));
          }
        });
        store(a.output<T>(0), g.x_at(b, h, v, c), total);
      });
    });
  });
}

}  // namespace millpond::backend::reference
