// dense_backward: the whole backward of a dense layer in one sweep over its kernel, a block of input features at a
// time: the block's part of dx = dz kernel^T from the old weights, then its gradient x^T dz through the optimiser's
// rule into the weights; with a bias, its gradient (the sum of dz over rows) too. The block's dx, after the epilogue
// (register 0 is dx; rows are rows of x, columns its features), may take the place of the block's x: neither the
// gradient of the kernel nor a second activation exists. Operands: x [rows, in], dz [rows, out], the step's scalars,
// kernel [in, out], its slots, with a bias: bias [out], its slots; then the epilogue's operands after register 0.
// Outputs: kernel, its slots, bias, its slots (the operands' own bytes), then the epilogue's results, or dx itself
// [rows, in] when it is empty. Memory: a block of gradient a thread as workspace.
#pragma once
#include "graph/builder.h"
#include "ops/expression.h"
#include "ops/rule.h"

namespace millpond::ops {

using graph::TensorType;

class DenseBackward final : public graph::Operator {
 public:
  DenseBackward(Rule r, bool with_bias, Expression e = {})
      : rule(std::move(r)), bias(with_bias), epilogue(std::move(e)) {}
  std::string_view name() const override { return "dense_backward"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  graph::MemoryFacts memory() const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  /// Operands before the epilogue's, and outputs before dx.
  int fixed_inputs() const { return 3 + state(); }
  int state() const { return (1 + rule.slot_count()) * (bias ? 2 : 1); }

  const Rule rule;
  const bool bias;
  const Expression epilogue;
};

}  // namespace millpond::ops
