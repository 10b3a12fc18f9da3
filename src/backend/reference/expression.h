// expression: runs an ops::Expression one place at a time. Used by fused, and by matmul, conv2d and dense_backward for
// their epilogues (register 0 is then handed in). Memory: registers, and one double for each sum, as workspace.
#pragma once
#include "backend/reference/types.h"
#include "ops/expression.h"

namespace millpond::backend::reference {

class Interpreter {
 public:
  /// Operand types of registers `first` and up. first = 1: register 0 is given to each call.
  Interpreter(ops::Expression e, int first, int64_t rows, int64_t cols, std::span<const TensorType> operands,
              std::span<const TensorType> outputs);

  Bytes workspace() const;
  void begin(std::byte* scratch) const;
  /// Reads every operand at (row, col), then stores or adds up every result: a result may lie over a full operand.
  /// in[0] is the operand of register `first`, out[0] result 0.
  void at(int64_t row, int64_t col, double register0, void* const* in, void* const* out, std::byte* scratch) const;
  /// Writes the sums.
  void end(void* const* out, std::byte* scratch) const;

 private:
  template <class T>
  void evaluate(int64_t row, int64_t col, double register0, void* const* in, void* const* out,
                std::byte* scratch) const;
  int64_t sums(int result) const;  // how many doubles this result adds up in

  ops::Expression e_;
  int first_;
  int64_t rows_, cols_;
  std::vector<DType> in_, out_;
  bool wide_;  // an output is float64: computed in double
};

}  // namespace millpond::backend::reference
