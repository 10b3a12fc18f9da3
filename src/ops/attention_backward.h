// attention_backward: dq, dk, dv from q, k, v, out, lse, dout; recomputes the scores tile by tile.
// Memory: tiles as workspace.
#pragma once
#include "graph/builder.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class AttentionBackward final : public graph::Operator {
 public:
  AttentionBackward(bool c, double s) : causal(c), scale(s) {}
  std::string_view name() const override { return "attention_backward"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;

  const bool causal;
  const double scale;
};

std::vector<Value> attention_backward(Builder& b, Value q, Value k, Value v, Value out, Value lse, Value dout,
                                      bool causal, double scale);

}  // namespace millpond::ops
