#include "ops/conv_pool_backward.h"
#include "backend/reference/types.h"
#include "backend/reference/window.h"
#include "ops/conv_pool.h"

namespace millpond::backend::reference {

// Workspace: the sums of the filter's and bias's gradients.
std::unique_ptr<Kernel> conv_pool_backward(const ops::ConvPoolBackward& op, const Request& request) {
  const Shape pooled = request.inputs[2].shape, filter = op.filter;
  const TensorType x = request.inputs[0];
  const Shape y = ops::Conv2D(op.window).product(x, {x.dtype, filter}).shape;
  const Geometry g(op.window, x.shape, y), cells(op.pool, y, pooled);
  const Filter f(filter, 1);
  const int bits = ops::ConvPool(op.window, op.pool).winner_bits();
  const int64_t winner_bytes = request.inputs[1].shape.back(), size = filter.size();
  return with_floating(x.dtype, [&]<class T>() {
    return loop(
        [=](const Arguments& a) {
          double *dfilter = reinterpret_cast<double*>(a.scratch), *dbias = dfilter + size;
          std::fill(dfilter, dbias + f.out, 0.0);
          const uint8_t* winners = a.input<uint8_t>(1);
          cells.each_output([&](int64_t b, int64_t row, int64_t col, int64_t o) {
            const int64_t at = cells.y_at(b, row, col, o);
            const double dy = double(load(a.input<T>(2), at));
            int64_t winner = 0;
            for (int bit = 0; bit < bits; ++bit)
              winner |=
                  int64_t(winners[at / f.out * winner_bytes + o / 16 * 2 * bits + 2 * bit + o % 16 / 8] >> o % 8 & 1)
                  << bit;
            const int64_t i = row * cells.window.height + winner / cells.window.width,
                          j = col * cells.window.width + winner % cells.window.width;
            dbias[o] += dy;
            g.taps(i, j, [&](int64_t p, int64_t q, int64_t h, int64_t v) {
              for (int64_t c = 0; c < f.in; ++c)
                dfilter[f.at(p, q, c, o)] += double(load(a.input<T>(0), g.x_at(b, h, v, c))) * dy;
            });
          });
          for (int64_t k = 0; k < size; ++k) store(a.output<T>(0), k, dfilter[k]);
          for (int64_t o = 0; o < f.out; ++o) store(a.output<T>(1), o, dbias[o]);
        },
        Bytes{(size + f.out) * int64_t(sizeof(double))});
  });
}

}  // namespace millpond::backend::reference
