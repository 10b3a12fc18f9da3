// Layers of several tensors: Add()({a, b}), Concatenate()({a, b}).
// Memory: the result. A sum is written over an operand that nobody reads again.
#pragma once
#include "millpond/layers/layer.h"

namespace millpond {

class Add : public Layer {
 public:
  explicit Add(std::string name = "");
};

class Concatenate : public Layer {
 public:
  /// Counts the batch: -1 is the last axis, 1 the first of a sample.
  explicit Concatenate(int axis = -1, std::string name = "");
};

}  // namespace millpond
