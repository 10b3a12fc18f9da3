// Input: where a model begins. Memory: its batch is staged in the arena, account staging/x<number>.
#pragma once
#include "millpond/layers/layer.h"

namespace millpond {

class Input : public SymbolicTensor {
 public:
  /// `shape` is that of one sample. A dimension that is None is known when data come, and may differ from batch to
  /// batch: the model has a program for each shape that it meets, of which it keeps a bounded number. Data of another
  /// dtype is converted when a batch is staged.
  explicit Input(Shape shape, DType dtype = DType::kFloat32, std::string name = "");
};

}  // namespace millpond
