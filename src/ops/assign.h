// assign: puts a value into a variable: operands variable, value; the output is the variable's own bytes.
// Memory: none beside the value; the runtime drops the call where the value can be made in the variable's bytes at
// once.
#pragma once
#include "graph/builder.h"

namespace millpond::ops {

using graph::Builder;
using graph::TensorType;
using graph::Value;

class Assign final : public graph::Operator {
 public:
  std::string_view name() const override { return "assign"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  graph::MemoryFacts memory() const override { return {.in_place = {{0, 0}}}; }
};

Value assign(Builder& b, Value variable, Value value);

}  // namespace millpond::ops
