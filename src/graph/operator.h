// Operator: the one extension point. Shape rule, gradient rule and memory facts; kernels live in the backends.
// Operators are immutable values shared between graphs.
#pragma once
#include "graph/graph.h"

namespace millpond::graph {

class Builder;

struct Overlap {
  int output = 0;
  int input = 0;
};

struct MemoryFacts {
  std::vector<Overlap> may_overwrite{};  // output may be written over input when nobody reads that input later
  std::vector<Overlap> in_place{};       // output IS the bytes of input (a variable being updated)
  bool view = false;                   // output 0 is input 0's bytes under another shape: no kernel runs
};

class Operator {
 public:
  virtual ~Operator() = default;
  /// Base name: the same in ops/list.inc, in file names and in every backend.
  virtual std::string_view name() const = 0;
  /// Everything beside operands that tells two operators of one name apart, as text: "strides=2x2 padding=same".
  /// Two nodes with equal name, attributes and operands compute the same value.
  virtual std::string attributes() const { return {}; }
  /// Types of the outputs. Throws Error(kShape/kDType) with all sizes and the cure.
  virtual std::vector<TensorType> infer(std::span<const TensorType> inputs) const = 0;
  /// Gradient for each operand (null Value: none), given that of each output (null Value: zero). The default refuses.
  virtual std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const;
  virtual MemoryFacts memory() const { return {}; }
  /// Multiply-adds counted twice. The default is one operation for each element of output 0.
  virtual double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const;
};

}  // namespace millpond::graph
