// evaluate: one operator on tensors of the host, by the reference kernels. For what is computed while a program is
// made: folding of constants. Memory: the results, and scratch for the duration of the call.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "graph/operator.h"
#include "millpond/tensor.h"

namespace millpond::backend {

std::vector<Tensor> evaluate(const graph::Operator& op, std::span<const Tensor> inputs,
                             std::span<const graph::TensorType> outputs);

}  // namespace millpond::backend
