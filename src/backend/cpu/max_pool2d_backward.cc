#include "ops/max_pool2d_backward.h"

#include "backend/cpu/max_pool_kernel.h"
#include "backend/cpu/slow.h"

namespace millpond::backend::cpu {

std::unique_ptr<Kernel> max_pool2d_backward(const ops::MaxPool2DBackward& op, const Request& request) {
  if (!all_float(request.outputs) || request.inputs[0].dtype != DType::kUInt8) return slow(op, request);
  const PoolShape shape = pool_shape(op.window, op.shape, request.inputs[0].shape);
  const double row = double(shape.width * shape.channels) *
                     double(2 + 2 * shape.size_h * shape.size_w / (shape.stride_h * shape.stride_w));
  return pool_kernel(
      shape, shape.height, row, [](const PoolShape& s, const Arguments& a, int64_t n, int64_t first, int64_t last) {
        const int64_t x = n * s.height * s.width * s.channels, y = n * s.out_height * s.out_width * s.channels;
        pool_rows_table().max_gradient(s, a.input<uint8_t>(0) + y, a.input<float>(1) + y, a.output<float>(0) + x, first,
                                       last);
      });
}

}  // namespace millpond::backend::cpu
