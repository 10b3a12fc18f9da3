#include "ops/average_pool2d_backward.h"

#include "backend/cpu/max_pool_kernel.h"
#include "backend/cpu/slow.h"

namespace millpond::backend::cpu {

std::unique_ptr<Kernel> average_pool2d_backward(const ops::AveragePool2DBackward& op, const Request& request) {
  if (!all_float(request.inputs)) return slow(op, request);
  const PoolShape shape = pool_shape(op.window, op.input, request.inputs[0].shape);
  const double row = double(shape.width * shape.channels) *
                     double(1 + shape.size_h * shape.size_w / (shape.stride_h * shape.stride_w));
  return pool_kernel(
      shape, shape.height, row, [](const PoolShape& s, const Arguments& a, int64_t n, int64_t first, int64_t last) {
        const int64_t x = n * s.height * s.width * s.channels, y = n * s.out_height * s.out_width * s.channels;
        pool_rows_table().average_gradient(s, a.input<float>(0) + y, a.output<float>(0) + x, first, last);
      });
}

}  // namespace millpond::backend::cpu
