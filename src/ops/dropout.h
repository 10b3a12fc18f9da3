// dropout: x * 1 / (1 - rate) where random_bits(random_key(salt, counter), element) says so, else 0. Linear in x, so
// its own gradient: the same operator on dy with the same counter. No mask is stored. Memory: no workspace; y may be
// written over x.
#pragma once
#include "graph/builder.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class Dropout final : public graph::Operator {
 public:
  Dropout(double r, uint64_t s) : rate(r), salt(s) {}
  std::string_view name() const override { return "dropout"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;
  graph::MemoryFacts memory() const override { return {.may_overwrite = {{0, 0}}}; }

  const double rate;
  const uint64_t salt;
  /// An element is kept when its bits are at least this.
  uint32_t threshold() const;
};

/// The same for a fused dropout, whose rate is a float: the operator rounds its own rate to one, so that a fused and an
/// unfused dropout of one salt agree in every element.
uint32_t dropout_threshold(float rate);
/// What a kept element is multiplied with: 1 / (1 - rate), rounded once.
float dropout_scale(float rate);

/// counter: int32 scalar, different in every step.
Value dropout(Builder& b, Value x, Value counter, double rate, uint64_t salt);

}  // namespace millpond::ops
