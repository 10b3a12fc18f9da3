// Variable: memory that outlives a step: a weight, an optimiser's slot, a counter. Programs read and update it in place, so
// whoever looks between two steps sees the current value.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "base/segment.h"
#include "graph/graph.h"

namespace millpond::runtime {

class Variable {
 public:
  Variable(std::string account, graph::TensorType type) : account_(std::move(account)), type_(std::move(type)) {}
  Variable(const Variable&) = delete;  // programs bind its address

  /// "weights/dense_1/kernel", "slots/adam.m/dense_1/kernel"
  const std::string& account() const { return account_; }
  void rename(std::string account) { account_ = std::move(account); }
  const graph::TensorType& type() const { return type_; }
  bool placed() const { return data_ != nullptr; }
  /// The live bytes. Placed variables only.
  Tensor value() const;
  std::byte* data() const { return data_; }

 private:
  friend void place(std::span<Variable* const> variables, std::string account);
  std::string account_;
  graph::TensorType type_;
  std::byte* data_ = nullptr;
  std::shared_ptr<Segment> segment_;  // shared with the variables placed together with this one
};

/// Gives every variable that has no memory yet its place, all in one segment in this order, 64-byte aligned, zeros. The
/// segment goes back to the operating system with the last of them. The segment is charged to `account` ("weights", "slots").
void place(std::span<Variable* const> variables, std::string account);
/// What place() would take for all of them.
Bytes bytes_to_place(std::span<const Variable* const> variables);

}  // namespace millpond::runtime
