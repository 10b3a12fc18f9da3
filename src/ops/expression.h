// Expression: a chain of element-wise functions run on one tile at a time, so that what lies between them never reaches
// memory. The body of the fused operator, and the epilogue of matrix products and convolutions.
//
// The iteration space is [rows, cols]: cols the last dimension of the full operands, rows all others together (a tensor
// whose operands are all full or scalar may be seen as one row). Register r < inputs.size() is operand r; register
// inputs.size() + i is the result of code[i]. A register has a dtype (types_of): an operand its own, a result that of
// its operands; a comparison gives bool, a cast and a constant say what they are. Half types are float32 in registers:
// they are rounded where they are stored or cast, not in between. Whole numbers wrap in every register.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "graph/operator.h"

namespace millpond::ops {

/// The fusion that is no operator of its own: an expression on the tiles of a product or a convolution before they are
/// stored.
inline constexpr std::string_view kEpilogue = "epilogue";

enum class Function : uint8_t {
#define MP_UNARY(name, formula) k_##name,
#define MP_BINARY(name, formula) k_##name,
#define MP_BITS(name, formula) k_##name,
#define MP_COMPARE(name, formula) k_##name,
#include "ops/functions.inc"
  k_select,    // a != 0 ? b : c
  k_cast,      // a as `dtype`
  k_constant,  // `immediate` as `dtype`
  k_dropout,   // a / (1 - rate) or 0, by random_bits(random_key(salt, *b), element number); immediate is the rate
};
std::string_view to_string(Function f);
int arity(Function f);
bool is_compare(Function f);
/// The element-wise function with this name; throws Error(kUsage).
Function parse_function(std::string_view name);

enum class Extent : uint8_t {
  kFull,    // one element for each place
  kRow,     // one for each column: varies along the last dimension (a bias)
  kColumn,  // one for each row
  kScalar,
};

struct Instruction {
  Function function;
  int16_t a = -1, b = -1, c = -1;  // registers
  double immediate = 0;
  uint64_t salt = 0;
  DType dtype = DType::kFloat32;  // k_cast, k_constant
  bool operator==(const Instruction&) const = default;
};

enum class Collect : uint8_t {
  kStore,    // every element
  kSumRows,  // sum over rows: one for each column
  kSumCols,  // sum over columns: one for each row
  kSumAll,
};

struct Result {
  int16_t reg = 0;
  Collect collect = Collect::kStore;
  double scale = 1;  // multiplies a sum (a mean is a sum times 1/n)
  bool operator==(const Result&) const = default;
};

struct Expression {
  std::vector<Extent> inputs;
  std::vector<Instruction> code;
  std::vector<Result> results;  // one for each output
  bool empty() const { return results.empty(); }
  bool operator==(const Expression&) const = default;
};

/// "r3 = add(r0, r1.row); r4 = relu(r3); -> r4, sum_rows(r3)". Operands that are not full say how they extend.
std::string to_string(const Expression& e);
/// What a function of both is computed in: their own type if it is one. Otherwise a bool is a number of the other's
/// type, and the wider floating type wins. Graphs have no such functions; rules of optimisers have (a half type and a
/// scalar).
DType joint(Function f, DType a, DType b);
/// The dtype of every register; `first` are those of the operands.
std::vector<DType> types_of(const Expression& e, std::vector<DType> first);
/// What is wrong with it (a register that is not there yet, a missing operand), or nothing.
std::string violation(const Expression& e);

}  // namespace millpond::ops
