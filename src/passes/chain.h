// Chain: an Expression under construction: element-wise nodes become instructions, their outside operands become
// inputs.
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "graph/graph.h"
#include "ops/expression.h"

namespace millpond::passes {

/// Is this an element-wise node that an Expression can hold, seen over the iteration space of `full`?
bool fits_chain(const graph::Node& n, const Shape& full);

class Chain {
 public:
  explicit Chain(Shape full) : full_(std::move(full)) {}

  /// Makes `v` an operand (a register), unless it is one already; constants of one element become instructions.
  int16_t operand(graph::Value v);
  /// Makes `v` the next operand even if it could be a constant; for register 0 of an epilogue.
  int16_t first(graph::Value v);
  /// Appends the node; its operands that are not in the chain become operands.
  void absorb(const graph::Node& n);
  bool has(graph::Value v) const { return registers_.count({v.node, v.output}) > 0; }
  int16_t reg(graph::Value v) const { return registers_.at({v.node, v.output}); }

  const std::vector<graph::Value>& operands() const { return operands_; }
  size_t size() const { return code_.size(); }
  /// The expression with these results. Registers are renumbered: operands first.
  ops::Expression finish(std::vector<ops::Result> results) const;

 private:
  int16_t emit(ops::Instruction i);
  Shape full_;
  std::vector<graph::Value> operands_;
  std::vector<ops::Extent> extents_;
  std::vector<ops::Instruction> code_;
  // Registers while building: operand i is i, instruction i is kCode + i.
  static constexpr int16_t kCode = 1000;
  std::map<std::pair<const graph::Node*, int>, int16_t> registers_;
};

}  // namespace millpond::passes
