// while_loop: a body run as long as a condition holds; values are carried from each step to the next.
//
//   operands    carries: what the first step gets  | shared: read whole by every step
//   condition   carries, shared  ->  one bool: is there another step?
//   body        carries, shared  ->  carries for the next step
//   outputs     carries after the last step: those given, if there was none
//
// Memory: the plans of condition and body for one step as workspace, and two places for each carry. No gradient: how
// many steps there will be is not known when memory is planned. scan has one.
#pragma once
#include "ops/flow.h"

namespace millpond::ops {

class WhileLoop final : public graph::Operator {
 public:
  WhileLoop(BodyRef c, BodyRef b, int carry_count, int64_t most_steps)
      : condition(std::move(c)), body(std::move(b)), carries(carry_count), most(most_steps) {}
  std::string_view name() const override { return "while_loop"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;
  std::vector<const Graph*> bodies() const override { return {&condition->graph, &body->graph}; }
  /// Of all steps that there may be; without a bound infinite, because nobody knows.
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;

  const BodyRef condition, body;
  const int carries;
  const int64_t most;  // steps, after which it ends whatever the condition says; 0: no bound
};

/// Throws Error(kShape) when the condition gives no single bool or a step gives a carry of another type.
std::vector<Value> while_loop(Builder& b, std::span<const Value> carries, std::span<const Value> shared,
                              const Write& condition, const Write& step, int64_t most = 0);

}  // namespace millpond::ops
