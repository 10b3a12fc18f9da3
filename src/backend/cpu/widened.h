// widened: a kernel for float32 run on half types. Operands are brought to float32 in scratch, the kernel runs on
// these, and its results are rounded: three phases or more instead of one, but all of them shared by the threads.
// Memory: four bytes as workspace for each element of a half type, beside the kernel's own.
#pragma once
#include "backend/host/kernel.h"

namespace millpond::backend::cpu {

using Maker = std::unique_ptr<Kernel> (*)(const graph::Operator&, const Request&);

/// Null: no operand and no result is of a half type, or the kernel for float32 is itself a slow one.
std::unique_ptr<Kernel> widened(const graph::Operator& op, const Request& request, Maker make);

}  // namespace millpond::backend::cpu
