// initialize: fills a new weight. Value i depends on the seed and i alone, so threads may share the work and bits repeat.
#pragma once
#include <span>

#include "millpond/initializers.h"
#include "millpond/tensor.h"

namespace millpond::nn {

void initialize(Tensor weight, const Initializer& init, uint64_t seed);

}  // namespace millpond::nn
