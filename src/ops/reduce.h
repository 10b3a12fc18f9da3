// reduce: sum, mean or maximum over some axes, which stay as 1 or go.
// Memory: no workspace in the reference; the cpu kernel asks for one partial result a block.
#pragma once
#include "graph/builder.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class Reduce final : public graph::Operator {
 public:
  enum class Kind : uint8_t { kSum, kMean, kMax };
  Reduce(Kind k, std::vector<int> a, bool keep) : kind(k), axes(std::move(a)), keepdims(keep) {}
  std::string_view name() const override { return "reduce"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;

  const Kind kind;
  const std::vector<int> axes;  // ascending, not negative
  const bool keepdims;

 protected:
  void add_attributes(graph::Key& key) const override {
    key.add(uint64_t(kind) * 2 + keepdims), key.add(std::span<const int>(axes));
  }
};

/// Negative axes count from the end; no axes at all means every one.
Value reduce(Builder& b, Reduce::Kind kind, Value x, std::vector<int> axes = {}, bool keepdims = false);
inline Value sum(Builder& b, Value x, std::vector<int> axes = {}, bool keepdims = false) {
  return reduce(b, Reduce::Kind::kSum, x, std::move(axes), keepdims);
}
inline Value mean(Builder& b, Value x, std::vector<int> axes = {}, bool keepdims = false) {
  return reduce(b, Reduce::Kind::kMean, x, std::move(axes), keepdims);
}
inline Value max(Builder& b, Value x, std::vector<int> axes = {}, bool keepdims = false) {
  return reduce(b, Reduce::Kind::kMax, x, std::move(axes), keepdims);
}

}  // namespace millpond::ops
