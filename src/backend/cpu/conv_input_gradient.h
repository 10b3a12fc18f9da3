// The gradient of a convolution's input for any window, by ConvGrid or Winograd. Operands dy, filter; with `pool` those
// of conv_pool_backward_input: a block then spreads the rows of dy that its pixels need over a tile of its own.
#pragma once
#include <memory>
#include <optional>

#include "backend/cpu/pool_rows.h"
#include "backend/host/kernel.h"

namespace millpond::backend::cpu {

struct InputGradient {
  ops::Window window;
  int64_t groups = 1;
  Shape x, filter;
  int64_t height = 0, width = 0;  // of dy, as far as it is not zero
};

std::unique_ptr<Kernel> conv_input_gradient(const InputGradient& c, std::optional<PoolRows> pool, int threads);

}  // namespace millpond::backend::cpu
