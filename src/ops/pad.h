// pad: zeros (or `value`) before and after along every dimension.
// Memory: no workspace; a copy.
#pragma once
#include "graph/builder.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class Pad final : public graph::Operator {
 public:
  Pad(std::vector<int64_t> lo, std::vector<int64_t> hi, double v)
      : before(std::move(lo)), after(std::move(hi)), value(v) {}
  std::string_view name() const override { return "pad"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;

  const std::vector<int64_t> before, after;
  const double value;
};

Value pad(Builder& b, Value x, std::vector<int64_t> before, std::vector<int64_t> after, double value = 0);

}  // namespace millpond::ops
