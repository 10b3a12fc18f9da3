// Operator: the one extension point. Shape rule, gradient rule and memory facts; kernels live in the backends.
// Operators are immutable values shared between graphs.
#pragma once
#include <typeinfo>

#include "graph/graph.h"
#include "graph/key.h"

namespace millpond::graph {

class Builder;

struct Overlap {
  int output = 0;
  int input = 0;
};

struct MemoryFacts {
  std::vector<Overlap> may_overwrite{};  // output may be written over input when nobody reads that input later
  std::vector<Overlap> in_place{};       // output IS the bytes of input (a variable being updated)
  bool view = false;                     // output 0 is input 0's bytes under another shape: no kernel runs
};

class Operator {
 public:
  virtual ~Operator() = default;
  /// Base name: the same in ops/list.inc, in file names and in every backend.
  virtual std::string_view name() const = 0;
  /// Everything beside operands that tells two operators of one name apart, as text: "strides=2x2 padding=same".
  /// Two nodes with equal name, attributes and operands compute the same value.
  virtual std::string attributes() const { return {}; }
  /// The same for a table that is asked at every call: what kind of operator it is, and what attributes() would tell.
  void identify(Key& key) const {
    key.add(uint64_t(reinterpret_cast<uintptr_t>(&typeid(*this))));
    add_attributes(key);
  }
  /// Types of the outputs. Throws Error(kShape/kDType) with all sizes and the cure.
  virtual std::vector<TensorType> infer(std::span<const TensorType> inputs) const = 0;
  /// Gradient for each operand (null Value: none), given that of each output (null Value: zero). The default refuses.
  virtual std::vector<Value> backward(Builder& b, const Node& node, std::span<const Value> dys) const;
  virtual MemoryFacts memory() const { return {}; }
  /// The graphs that it runs: what makes it control flow (ops/flow.h). Such an operator has no kernel; whoever lowers
  /// it lowers its bodies, and the backend's executor runs them.
  virtual std::vector<const Graph*> bodies() const { return {}; }
  /// Multiply-adds counted twice; infinite where nobody knows. The default is one for each element of output 0.
  virtual double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const;

 protected:
  /// As text, unless an operator that is often run by itself has something cheaper. Keys are equal where attributes()
  /// are, and only there.
  virtual void add_attributes(Key& key) const { key.add(attributes()); }
};

}  // namespace millpond::graph
