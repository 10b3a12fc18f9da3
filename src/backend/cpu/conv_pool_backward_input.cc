#include "ops/conv_pool_backward_input.h"

#include "backend/cpu/conv_input_gradient.h"
#include "backend/cpu/slow.h"

namespace millpond::backend::cpu {

std::unique_ptr<Kernel> conv_pool_backward_input(const ops::ConvPoolBackwardInput& op, const Request& request) {
  if (!all_float(request.outputs)) return slow(op, request);
  const PoolRows pool(op.pool, request.inputs[0].shape);
  return conv_input_gradient({op.window, 1, op.input, request.inputs[1].shape, pool.height(), pool.width()}, pool,
                             request.threads);
}

}  // namespace millpond::backend::cpu
