// one_hot: [..., depth] with 1 where the last index equals the label and 0 elsewhere; labels are integers.
// Memory: no workspace.
#pragma once
#include "graph/builder.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class OneHot final : public graph::Operator {
 public:
  OneHot(int64_t d, DType t) : depth(d), dtype(t) {}
  std::string_view name() const override { return "one_hot"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;

  const int64_t depth;
  const DType dtype;

 protected:
  void add_attributes(graph::Key& key) const override { key.add(uint64_t(depth)), key.add(uint64_t(dtype)); }
};

Value one_hot(Builder& b, Value labels, int64_t depth, DType dtype = DType::kFloat32);

}  // namespace millpond::ops
