// fused: an Expression over whole tensors: a chain of element-wise operators, and sums of their results, in one pass
// over memory. All full operands and stored results have the same number of elements; `rows` x `cols` is the iteration
// space. Memory: no workspace but partial sums; a stored result may be written over a full operand of the same dtype.
#pragma once
#include "graph/builder.h"
#include "ops/expression.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class Fused final : public graph::Operator {
 public:
  Fused(Expression e, int64_t r, int64_t c, std::vector<TensorType> t)
      : expression(std::move(e)), rows(r), cols(c), types(std::move(t)) {}
  std::string_view name() const override { return "fused"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;
  graph::MemoryFacts memory() const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;

  const Expression expression;
  const int64_t rows, cols;
  const std::vector<TensorType> types;  // of the outputs
};

}  // namespace millpond::ops
