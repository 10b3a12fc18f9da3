// recompute_to: a step is brought down to a number of bytes by making values again instead of keeping them.
//
// What is found: any value that is alive over the calls where most is alive, whatever layer it belongs to and whether
// forward or backward made it. Making it again costs what Operator::flops says and the bytes that its call reads and
// writes; the same for every operand that has to be made again for it. So a chain of calls, such as a block of a
// network, is made again from what lies before it as soon as its values are worth it one by one.
//
// What is chosen: always the value that takes most bytes off the calls that are too large, for its cost. Between those
// that are about as good, the one whose making keeps other values alive the least: of a chain of equal layers every
// second value goes first, then every second of the rest, so that about the root of their number are left.
//
//   arena ^ *                          The choices do not depend on the target: they are one path from the step as it is
//         |   * *                      to the smallest that it comes to, and the target only says where on it to stop.
//         |       * *                  So a smaller target never gives a larger arena.
//         |           * * *  *
//         +-----------------------> flops
//
// Values come out bit for bit as without: the same kernels get the same operands. Random numbers too, because an
// operator that draws them does so by a counter that it reads (ops/dropout.h). What has an effect beside its outputs
// (an update of a variable) never runs twice.
//
// It costs time in proportion to choices * calls: docs/memory.md has figures.
#pragma once
#include "passes/passes.h"
#include "passes/schedule.h"

namespace millpond::passes {

struct RecomputeOptions {
  Bytes target;  // for the arena
  ScheduleOptions schedule;
  plan::Options plan;
};

/// The graph must be ordered, with its updates assigned; its calls stay in that order, and those that run again come
/// between them. A step that fits already is left as it is, and so is one that nothing makes smaller.
Recomputed recompute_to(graph::Graph& graph, const RecomputeOptions& options);

}  // namespace millpond::passes
