// The steps of a prepared expression (expression.h): plain data and function pointers, shared by the code that is
// compiled for each instruction set and the code that is not. A step runs one function over a chunk of at most a few
// hundred elements in L1.
#pragma once
#include <cstdint>

#include "backend/cpu/isa.h"

namespace millpond::backend::cpu {

/// Where a register lies for the chunk at hand. rs: elements from one row to the next (0: every row reads the same).
struct Ref {
  void* p;
  int64_t rs;
};

/// What a step's result covers of the chunk; as ops::Extent.
enum class Span : uint8_t { kFull, kRow, kColumn, kScalar };

struct Chunk {
  int64_t rows[4], cols[4];          // for each Span; a kColumn step sees its column as one row
  uint32_t element, element_stride;  // number of the first element in the tensor, and from row to row
  bool first_row, first_col, first;  // a sum over rows (over columns, over all) begins here
  const uint64_t* keys;              // of dropout
};

struct Step;
using StepFunction = void (*)(const Step&, const Ref*, const Chunk&);

struct Step {
  StepFunction run;
  int16_t d, a, b, c;  // into Ref[]
  Span span;
  int16_t key;  // of dropout
  uint32_t threshold;
  float scale;
};

/// Functions of one step: those of ops::Function under the same numbers, then steps that do the work of several.
enum StepKind : int {
#define MP_UNARY(name, formula) kStep_##name,
#define MP_BINARY(name, formula) kStep_##name,
#define MP_BITS(name, formula) kStep_##name,
#define MP_COMPARE(name, formula) kStep_##name,
#include "ops/functions.inc"
  kStep_select,
  kStep_cast_bool,  // k_cast has steps for each pair of lanes; this is the one to bool
  kStep_constant,
  kStep_dropout,
  kStep_copy,
  kStep_add_relu,          // relu(a + b)
  kStep_add_relu_dropout,  // dropout(relu(a + b))
  kStep_gate_dropout,      // dropout(a) gated by b
};

// A whole expression on at most one vector of elements, as threaded code: each op ends by jumping to the next and hands
// its value over in a register, because a value that goes through memory costs 12 cycles more.

struct TinyCall {
  void* const* in;
  void* const* out;
  const float* product;
  int64_t n;
};
struct TinyKind {  // which op to take
  enum Source : uint8_t { kRegister, kLast };
  int kind = 0;  // StepKind, or one of the below
  Source a = kRegister, b = kRegister;
};
enum TinyOther : int {
  kTiny_load = 1000,
  kTiny_load_scalar,
  kTiny_load_product,
  kTiny_load_int32,
  kTiny_load_byte,
  kTiny_store,
  kTiny_store_bool,
  kTiny_sum,
  kTiny_end
};

struct alignas(32) TinyOp {
  void (*run)();  // really a function of the instruction set's own type
  int16_t d, a, b, c;
  float scale;
  uint32_t threshold;
  int16_t counter;  // of dropout: operand
  uint64_t salt;
};

struct ExpressionSteps {
  int lanes;
  /// Null: no such op.
  void (*(*tiny_op)(TinyKind kind))();
  void (*tiny)(const TinyOp* ops, const TinyCall& call);

  /// va, vb, vc: the operand has one element for each column of the step; otherwise one for each row.
  StepFunction (*step)(int kind, bool va, bool vb, bool vc);
  StepFunction from_int32, from_int64, from_byte;  // a in another type -> d; all others are in TypedSteps
  StepFunction to_bool;
  // acc d (float, or one double for sum_all) = or += sums of a
  StepFunction (*sum_rows)(bool va);
  StepFunction (*sum_cols)(bool va);
  StepFunction (*sum_all)(bool va);
  /// x[0..n) *= s
  void (*scale)(float* x, int64_t n, float s);
  /// out[i] = s * (x[i] + x[n + i] + ... ), `count` of them in order
  void (*combine)(float* out, const float* x, int64_t n, int64_t count, float s);
};

MP_ISA_TABLE(ExpressionSteps, expression_steps)

}  // namespace millpond::backend::cpu
