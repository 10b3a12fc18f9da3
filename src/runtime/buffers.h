// Which value lies where: views share bytes with what they view, updates happen in the variable's own bytes, a result
// may take the place of an operand nobody reads again; everything else becomes a buffer of the plan with its lifetime.
#pragma once
#include "runtime/lower.h"

namespace millpond::runtime {

struct BufferOptions {
  bool in_place = true;          // results over operands (must-alias happens regardless)
  bool caller_operands = false;  // inputs and outputs are no buffers
};
/// From graph and calls: in, out and scratch of every call, and the problem, variables, constants, inputs and outputs.
void assign_buffers(Lowered& lowered, const BufferOptions& options);

}  // namespace millpond::runtime
