// dense_update: the weight gradient of a dense layer put straight into its weights: g = x^T dz block by block, each
// block through the optimiser's rule while it is in cache; with a bias, its gradient (the sum of dz over rows) too.
// Operands: x [rows, in], dz [rows, out], the step's scalars, kernel [in, out], its slots, and with a bias: bias [out],
// its slots. Outputs: kernel, its slots, bias, its slots: the operands' own bytes. Memory: no gradient array exists; a
// block of it a thread as workspace.
#pragma once
#include "graph/builder.h"
#include "ops/rule.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class DenseUpdate final : public graph::Operator {
 public:
  DenseUpdate(Rule r, bool with_bias) : rule(std::move(r)), bias(with_bias) {}
  std::string_view name() const override { return "dense_update"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  graph::MemoryFacts memory() const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;

  const Rule rule;
  const bool bias;
};

}  // namespace millpond::ops
