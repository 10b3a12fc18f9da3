#include "ops/average_pool2d.h"

#include "backend/cpu/max_pool_kernel.h"
#include "backend/cpu/slow.h"

namespace millpond::backend::cpu {

std::unique_ptr<Kernel> average_pool2d(const ops::AveragePool2D& op, const Request& request) {
  if (!all_float(request.inputs)) return slow(op, request);
  const PoolShape shape = pool_shape(op.window, request.inputs[0].shape, request.outputs[0].shape);
  const double row = double(shape.out_width * shape.channels) * double(1 + shape.size_h * shape.size_w);
  return pool_kernel(
      shape, shape.out_height, row, [](const PoolShape& s, const Arguments& a, int64_t n, int64_t first, int64_t last) {
        pool_rows_table().average(s, a.input<float>(0) + n * s.height * s.width * s.channels,
                                  a.output<float>(0) + n * s.out_height * s.out_width * s.channels, first, last);
      });
}

}  // namespace millpond::backend::cpu
