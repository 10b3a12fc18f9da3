#include "ops/conv_pool.h"
#include "backend/reference/types.h"
#include "backend/reference/window.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> conv_pool(const ops::ConvPool& op, const Request& request) {
  const Shape filter = request.inputs[1].shape;
  const Shape y = ops::Conv2D(op.window).product(request.inputs[0], request.inputs[1]).shape;
  const Geometry g(op.window, request.inputs[0].shape, y), cells(op.pool, y, request.outputs[0].shape);
  const Filter f(filter, 1);
  const int bits = op.winner_bits();
  const int64_t winner_bytes = request.outputs[1].shape.back(), total_winners = request.outputs[1].shape.size();
  return with_floating(request.inputs[0].dtype, [&]<class T>() {
    return loop([=](const Arguments& a) {
      uint8_t* winners = a.output<uint8_t>(1);
      std::fill(winners, winners + total_winners, uint8_t{0});
      cells.each_output([&](int64_t b, int64_t row, int64_t col, int64_t o) {
        int64_t winner = 0;
        Number<T> best = 0;  // relu: nothing below it is ever seen
        cells.taps(row, col, [&](int64_t r, int64_t s, int64_t i, int64_t j) {
          double total = 0;
          g.taps(i, j, [&](int64_t p, int64_t q, int64_t h, int64_t v) {
            for (int64_t c = 0; c < f.in; ++c)
              total += double(load(a.input<T>(0), g.x_at(b, h, v, c))) * double(load(a.input<T>(1), f.at(p, q, c, o)));
          });
          const T rounded = convert<T>(total + double(load(a.input<T>(2), o)));  // ties are those of the stored values
          if (const Number<T> value = load(&rounded, 0); value > best || value != value)
            best = value, winner = r * cells.window.width + s;
        });
        const int64_t cell = cells.y_at(b, row, col, 0) / cells.out;
        store(a.output<T>(0), cell * cells.out + o, best);
        for (int bit = 0; bit < bits; ++bit)
          winners[cell * winner_bytes + o / 16 * 2 * bits + 2 * bit + o % 16 / 8] |=
              uint8_t((winner >> bit & 1) << o % 8);
      });
    });
  });
}

}  // namespace millpond::backend::reference
