// row_scale: y[r, c] = x[r, c] * gain[c].
// Memory: no workspace; y may be written over x.
#pragma once
#include "graph/builder.h"

namespace millpond::ops {

class RowScale final : public graph::Operator {
 public:
  std::string_view name() const override { return "row_scale"; }
  std::vector<graph::TensorType> infer(std::span<const graph::TensorType> inputs) const override;
  std::vector<graph::Value> backward(graph::Builder& b, const graph::Node& node,
                                     std::span<const graph::Value> dys) const override;
  graph::MemoryFacts memory() const override { return {.may_overwrite = {{0, 0}}}; }
};

graph::Value row_scale(graph::Builder& b, graph::Value x, graph::Value gain);

}  // namespace millpond::ops
