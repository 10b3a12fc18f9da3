// Variable: a value that changes: a weight of a layer, or one of your own. Reading it gives an EagerTensor of what it
// holds now, which stays as it is when the variable changes. Tapes watch those that are trainable by themselves.
//
//   Variable w(ops::zeros({3}), {.name = "w"});
//   w.assign_sub(0.1 * gradient);
//
// A handle: copies are the same variable, and so are those that Layer::variables() and Model::variables() give.
// Memory: its values, account variables/<name>, or the layer's own. Reading copies nothing; a change copies the values
// before it once, if somebody still has what was read (a tape, an EagerTensor).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "millpond/eager.h"
#include "millpond/initializers.h"

namespace millpond {

namespace nn {
struct WeightState;
}

struct VariableOptions {
  bool trainable = true;
  std::string name = "variable";
};

class Variable {
 public:
  explicit Variable(const EagerTensor& initial, VariableOptions options = {});
  Variable(const Initializer& initializer, Shape shape, DType dtype = DType::kFloat32, VariableOptions options = {});

  EagerTensor value() const;
  operator EagerTensor() const { return value(); }
  /// Converted to the variable's dtype. Throws Error(kShape) for another shape.
  void assign(const EagerTensor& value);
  void assign_add(const EagerTensor& value);
  void assign_sub(const EagerTensor& value);

  /// "kernel"; and with its owner, "dense/kernel".
  std::string name() const;
  std::string path() const;
  DType dtype() const;
  const Shape& shape() const;
  bool trainable() const;
  /// The same variable.
  bool is(const Variable& other) const { return state_ == other.state_; }

  explicit Variable(std::shared_ptr<nn::WeightState> state) : state_(std::move(state)) {}
  const std::shared_ptr<nn::WeightState>& state() const { return state_; }

 private:
  std::shared_ptr<nn::WeightState> state_;
};

using Variables = std::vector<Variable>;

}  // namespace millpond
