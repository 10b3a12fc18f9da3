// One element-wise instruction as a whole kernel: unary, binary, select, cast and dropout are expressions of length
// one.
#pragma once
#include "backend/host/kernel.h"
#include "ops/expression.h"

namespace millpond::backend::cpu {

/// Operands are broadcast into the shape of the output. The reference kernel where a type or a way of broadcasting has
/// no fast path.
std::unique_ptr<Kernel> elementwise(const graph::Operator& op, ops::Instruction instruction, const Request& request);

}  // namespace millpond::backend::cpu
