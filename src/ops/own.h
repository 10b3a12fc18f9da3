// own: an operator that a user wrote (millpond/extend.h). Its kernel is the user's function, on the host.
// Memory: its results; in debug builds also scratch in which what it writes is watched.
#pragma once
#include "graph/builder.h"
#include "millpond/extend.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class Own final : public graph::Operator {
 public:
  explicit Own(std::shared_ptr<const extend::OwnOperator> o);
  std::string_view name() const override { return "own"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const override;
  /// Of an operator that works element by element the default; otherwise infinite, because nobody knows.
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  /// `operator "swish" (class Swish)`
  std::string who() const;

  const std::shared_ptr<const extend::OwnOperator> own;
};

/// The name of a user's class as it stands in the program: "Swish".
std::string class_name(const std::type_info& type);

}  // namespace millpond::ops
