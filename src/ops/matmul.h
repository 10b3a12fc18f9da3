// matmul: c = a b over the last two dimensions, either one transposed; leading dimensions broadcast. An epilogue, if
// any, is applied to each tile of c before it is stored: its register 0 is c, the others are the operands after b.
// Memory: the product itself is never stored when the epilogue does not store register 0. Workspace: asked of the
// kernel.
#pragma once
#include "graph/builder.h"
#include "ops/expression.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class MatMul final : public graph::Operator {
 public:
  explicit MatMul(bool ta = false, bool tb = false, Expression e = {})
      : transpose_a(ta), transpose_b(tb), epilogue(std::move(e)) {}
  /// The type of c alone.
  TensorType product(const TensorType& a, const TensorType& b) const;
  std::string_view name() const override { return "matmul"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;

  const bool transpose_a, transpose_b;
  const Expression epilogue;  // empty: c is the only output

 protected:
  void add_attributes(graph::Key& key) const override {
    key.add(uint64_t(transpose_a) * 2 + transpose_b);
    key.add(epilogue.empty() ? std::string() : attributes());
  }
};

Value matmul(Builder& b, Value x, Value y, bool transpose_x = false, bool transpose_y = false);

}  // namespace millpond::ops
