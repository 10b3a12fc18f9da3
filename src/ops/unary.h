// unary: y = f(x), one function of functions.inc on every element.
// Memory: no workspace; y may be written over x.
#pragma once
#include "graph/builder.h"
#include "ops/expression.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class Unary final : public graph::Operator {
 public:
  explicit Unary(Function f) : function(f) {}
  std::string_view name() const override { return "unary"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;
  graph::MemoryFacts memory() const override { return {.may_overwrite = {{0, 0}}}; }

  const Function function;

 protected:
  void add_attributes(graph::Key& key) const override { key.add(uint64_t(function)); }
};

Value unary(Builder& b, Function f, Value x);
#define MP_UNARY(name, formula) \
  inline Value name(Builder& b, Value x) { return unary(b, Function::k_##name, x); }
#include "ops/functions.inc"

}  // namespace millpond::ops
