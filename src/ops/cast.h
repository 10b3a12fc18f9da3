// cast: the same values in another dtype (toward zero to integers, != 0 to bool).
// Memory: no workspace.
#pragma once
#include "graph/builder.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class Cast final : public graph::Operator {
 public:
  explicit Cast(DType t) : dtype(t) {}
  std::string_view name() const override { return "cast"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;

  const DType dtype;

 protected:
  void add_attributes(graph::Key& key) const override { key.add(uint64_t(dtype)); }
};

/// x itself when it has that dtype already.
Value cast(Builder& b, Value x, DType dtype);

}  // namespace millpond::ops
