// expression: runs an ops::Expression one place at a time. Used by fused, and by matmul, conv2d and dense_backward for
// their epilogues (register 0 is then handed in). Memory: registers, and eight bytes for each sum, as workspace.
#pragma once
#include "backend/reference/types.h"
#include "ops/expression.h"

namespace millpond::backend::reference {

class Interpreter {
 public:
  /// Operand types of registers `first` and up. first = 1: register 0 is given to each call and has the type `given`.
  Interpreter(ops::Expression e, int first, int64_t rows, int64_t cols, std::span<const TensorType> operands,
              std::span<const TensorType> outputs, DType given = DType::kFloat32);

  Bytes workspace() const;
  void begin(std::byte* scratch) const;
  /// Reads every operand at (row, col), then stores or adds up every result: a result may lie over a full operand.
  /// in[0] is the operand of register `first`, out[0] result 0.
  void at(int64_t row, int64_t col, double register0, void* const* in, void* const* out, std::byte* scratch) const;
  /// Writes the sums.
  void end(void* const* out, std::byte* scratch) const;

 private:
  union Register {  // as the number that its dtype is computed with; float32 and the half types lie in `d`
    double d;
    int64_t i;
    uint64_t u;
  };
  template <class T>
  static T get(Register r, DType t);
  template <class T>
  static Register made(T v, DType t);
  Register evaluate(const ops::Instruction& c, const Register* r, DType t, int64_t element, void* const* in) const;
  int64_t sums(int result) const;  // how many this result adds up in

  ops::Expression e_;
  int first_;
  int64_t rows_, cols_;
  std::vector<DType> in_, out_, types_;  // of operands, outputs, registers
};

}  // namespace millpond::backend::reference
