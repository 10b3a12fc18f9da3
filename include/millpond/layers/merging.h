// Layers of several tensors: Add()({a, b}), Concatenate()({a, b}). What counts by the mask of any of them counts in the
// result; where one has no mask all counts. Concatenated along another axis than the last, masks follow each other too.
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
