// run_expression: an expression over whole tensors, in blocks of rows (or of columns, where there are few rows). The
// body of `fused` and of the operators that are one instruction. Null: a type has no fast path. Memory:
// ExpressionKernel's.
#pragma once
#include "backend/cpu/expression.h"

namespace millpond::backend::cpu {

std::unique_ptr<Kernel> run_expression(const ops::Expression& e, int64_t rows, int64_t cols, const Request& request);

}  // namespace millpond::backend::cpu
