// slow: the reference kernel where there is no fast one; it says so in plans (Kernel::slow) unless the work is too
// small to notice.
#pragma once
#include "backend/host/kernel.h"

namespace millpond::backend::cpu {

std::unique_ptr<Kernel> slow(const graph::Operator& op, const Request& request);

/// Every type is float32.
bool all_float(std::span<const TensorType> types);

}  // namespace millpond::backend::cpu
