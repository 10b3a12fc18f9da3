// Input: where a model begins. Memory: its batch is staged in the arena, account staging/x<number>.
#pragma once
#include "millpond/layers/layer.h"

namespace millpond {

class Input : public SymbolicTensor {
 public:
  /// `shape` is that of one sample. Data of another dtype is converted when a batch is staged.
  explicit Input(Shape shape, DType dtype = DType::kFloat32, std::string name = "");
};

}  // namespace millpond
