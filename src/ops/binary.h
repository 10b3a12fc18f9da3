// binary: z = f(x, y) with NumPy's broadcasting; both operands have one dtype.
// Memory: no workspace; z may be written over an operand of its own shape and dtype (the plan checks both).
#pragma once
#include "graph/builder.h"
#include "ops/expression.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class Binary final : public graph::Operator {
 public:
  explicit Binary(Function f) : function(f) {}
  std::string_view name() const override { return "binary"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;
  graph::MemoryFacts memory() const override { return {.may_overwrite = {{0, 0}, {0, 1}}}; }

  const Function function;

 protected:
  void add_attributes(graph::Key& key) const override { key.add(uint64_t(function)); }
};

Value binary(Builder& b, Function f, Value x, Value y);
#define MP_BINARY(name, formula) \
  inline Value name(Builder& b, Value x, Value y) { return binary(b, Function::k_##name, x, y); }
#define MP_BITS(name, formula) \
  inline Value name(Builder& b, Value x, Value y) { return binary(b, Function::k_##name, x, y); }
#define MP_COMPARE(name, formula) \
  inline Value name(Builder& b, Value x, Value y) { return binary(b, Function::k_##name, x, y); }
#include "ops/functions.inc"

/// x + c, x * c and so on with a constant of x's dtype.
inline Value binary(Builder& b, Function f, Value x, double c) { return binary(b, f, x, b.scalar(x.dtype(), c)); }
inline Value add(Builder& b, Value x, double c) { return binary(b, Function::k_add, x, c); }
inline Value multiply(Builder& b, Value x, double c) { return binary(b, Function::k_multiply, x, c); }
/// Sums `x` down to `shape`, undoing a broadcast (the gradient of broadcasting).
Value sum_to(Builder& b, Value x, const Shape& shape);

}  // namespace millpond::ops
