#include "ops/max_pool2d.h"

#include "backend/cpu/max_pool_kernel.h"
#include "backend/cpu/slow.h"

namespace millpond::backend::cpu {

std::unique_ptr<Kernel> max_pool2d(const ops::MaxPool2D& op, const Request& request) {
  if (!all_float(request.inputs) || op.winner_dtype() != DType::kUInt8) return slow(op, request);
  const PoolShape shape = pool_shape(op.window, request.inputs[0].shape, request.outputs[0].shape);
  const double row = double(shape.out_width * shape.channels) * double(1 + shape.size_h * shape.size_w);
  return pool_kernel(shape, shape.out_height, row,
                     [](const PoolShape& s, const Arguments& a, int64_t n, int64_t first, int64_t last) {
                       const int64_t y = n * s.out_height * s.out_width * s.channels;
                       pool_rows_table().max(s, a.input<float>(0) + n * s.height * s.width * s.channels,
                                             a.output<float>(0) + y, a.output<uint8_t>(1) + y, first, last);
                     });
}

}  // namespace millpond::backend::cpu
