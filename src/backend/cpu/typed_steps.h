// Steps of an expression (expression_steps.h) on numbers other than float32. A register lies in lanes of one of five
// numbers, whatever its dtype is; what is narrower in memory is widened when it is read and cut when it is stored:
//
//   kFloat    float32, bfloat16, float16; bool as 1 or 0      kInt64    int64, uint32
//   kDouble   float64                                         kUInt64   uint64
//   kInt32    int8, int16, int32, uint8, uint16
//
// So there are loops for five numbers, not for thirteen dtypes. A result that no longer fits its dtype is wrapped by a
// step of its own (`settle`), which also rounds the half types. Steps on kFloat are those of expression_steps.h.
#pragma once
#include <cstdint>

#include "backend/cpu/expression_steps.h"
#include "backend/cpu/stored.h"

namespace millpond::backend::cpu {

struct TypedSteps {
  /// A StepKind on lanes that are not kFloat; null: there is none. Comparisons give kFloat, select's condition is
  /// kFloat.
  StepFunction (*step)(Lanes lanes, int kind, bool va, bool vb, bool vc);
  /// From memory to lanes and back. Null where both are the same.
  StepFunction (*load)(Stored type);
  StepFunction (*store)(Stored type);
  /// From lanes to those of `to`; to bool as 1 or 0; to the half types so that `settle` rounds only once.
  StepFunction (*cast)(Lanes from, Stored to);
  /// The low bits of a narrow whole number, the rounding of a half type; null: nothing to do.
  StepFunction (*settle)(Stored type);
  // Sums of doubles, as those of floats in ExpressionSteps.
  StepFunction (*sum_rows)(bool va);
  StepFunction (*sum_cols)(bool va);
  StepFunction (*sum_all)(bool va);
  void (*scale)(double* x, int64_t n, double s);
  void (*combine)(double* out, const double* x, int64_t n, int64_t count, double s);
};

MP_ISA_TABLE(TypedSteps, typed_steps)

}  // namespace millpond::backend::cpu
