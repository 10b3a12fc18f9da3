// scan: a body run once for each element of sequences, from the first to the last (or back), with values carried from
// each step to the next.
//
//   operands   carries: what the first step gets   | sequences [length, ...]  | shared: read whole by every step
//   body       carries, one element of each sequence, shared  ->  carries for the next step, one element of each stack
//   outputs    carries after the last step         | stacks [length, ...]
//
// Memory: the body's plan for one step as workspace, whatever the length; two places for a carry that cannot be made
// over the one before; nothing for sequences and stacks, whose elements are read and written where they lie (a copy of
// one element where its bytes are no multiple of 64). Gradient: see ops/flow.h. Backward is a scan the other way.
#pragma once
#include "ops/flow.h"

namespace millpond::ops {

class Scan final : public graph::Operator {
 public:
  Scan(BodyRef b, int carry_count, int sequence_count, int64_t steps, bool backwards = false)
      : body(std::move(b)), carries(carry_count), sequences(sequence_count), length(steps), reverse(backwards) {}
  std::string_view name() const override { return "scan"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<const Graph*> bodies() const override { return {&body->graph}; }
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  int stacks() const { return int(body->graph.outputs.size()) - carries; }

  const BodyRef body;
  const int carries, sequences;
  const int64_t length;
  const bool reverse;  // the last element first; stacks lie in the order of the sequences all the same
};

struct ScanOptions {
  bool reverse = false;
  int64_t length = 0;  // 0: that of the sequences; wanted where there are none
};
/// `step` gets carries, elements of the sequences and shared, and returns carries and what is stacked. Returns carries
/// and stacks. Throws Error(kShape) when sequences differ in length or a step gives a carry of another type.
std::vector<Value> scan(Builder& b, std::span<const Value> carries, std::span<const Value> sequences,
                        std::span<const Value> shared, const Write& step, const ScanOptions& options = {});

}  // namespace millpond::ops
