// slice: elements [start, start + size) along every dimension.
// Memory: no workspace; a copy.
#pragma once
#include "graph/builder.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class Slice final : public graph::Operator {
 public:
  Slice(std::vector<int64_t> s, Shape n) : starts(std::move(s)), sizes(n) {}
  std::string_view name() const override { return "slice"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;

  const std::vector<int64_t> starts;
  const Shape sizes;

 protected:
  void add_attributes(graph::Key& key) const override { key.add(std::span<const int64_t>(starts)), key.add(sizes); }
};

Value slice(Builder& b, Value x, std::vector<int64_t> starts, Shape sizes);

}  // namespace millpond::ops
