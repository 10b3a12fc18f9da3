#include "ops/expression.h"

#include <array>

#include "base/format.h"
#include "millpond/error.h"

namespace millpond::ops {

namespace {
enum class Kind : uint8_t { kUnary, kBinary, kCompare, kOther };
struct Description {
  std::string_view name;
  int arity;
  Kind kind;
};
// In the order of the enumeration: both read the same list.
constexpr Description kFunctions[] = {
#define MP_UNARY(name, formula) {#name, 1, Kind::kUnary},
#define MP_BINARY(name, formula) {#name, 2, Kind::kBinary},
#define MP_BITS(name, formula) {#name, 2, Kind::kBinary},
#define MP_COMPARE(name, formula) {#name, 2, Kind::kCompare},
#include "ops/functions.inc"
    {"select", 3, Kind::kOther},
    {"cast", 1, Kind::kOther},
    {"constant", 0, Kind::kOther},
    {"dropout", 2, Kind::kOther},
};
static_assert(std::size(kFunctions) == size_t(Function::k_dropout) + 1);

const Description& describe(Function f) { return kFunctions[int(f)]; }
}  // namespace

std::string_view to_string(Function f) { return describe(f).name; }
int arity(Function f) { return describe(f).arity; }
bool is_compare(Function f) { return describe(f).kind == Kind::kCompare; }

Function parse_function(std::string_view name) {
  std::string known;
  for (int i = 0; kFunctions[i].kind != Kind::kOther; ++i) {
    if (kFunctions[i].name == name) return Function(i);
    known += format("{}{}", i ? ", " : "", kFunctions[i].name);
  }
  throw Error(Code::kUsage, format("\"{}\" is not an element-wise function", name)).hint("known: " + known);
}

std::string to_string(const Expression& e) {
  static constexpr const char* kExtent[] = {"", ".row", ".column", ".scalar"};
  static constexpr const char* kCollect[] = {"", "sum_rows", "sum_cols", "sum_all"};
  auto reg = [&](int r) {
    return format("r{}{}", r, r >= 0 && r < int(e.inputs.size()) ? kExtent[int(e.inputs[r])] : "");
  };
  std::string text;
  for (size_t i = 0; i < e.code.size(); ++i) {
    const Instruction& c = e.code[i];
    text += format("r{} = {}", e.inputs.size() + i, to_string(c.function));
    if (c.function == Function::k_constant) {
      text +=
          format(" {}{}; ", c.dtype == DType::kFloat32 ? format("{}", float(c.immediate)) : format("{}", c.immediate),
                 c.dtype == DType::kFloat32 ? "" : format(" {}", c.dtype));
      continue;
    }
    const int operands[] = {c.a, c.b, c.c};
    for (int k = 0; k < arity(c.function); ++k) text += (k ? ", " : "(") + reg(operands[k]);
    if (c.function == Function::k_cast) text += format(", {}", c.dtype);
    if (c.function == Function::k_dropout) text += format(", rate={}, salt={}", float(c.immediate), c.salt);
    text += "); ";
  }
  text += "->";
  for (size_t i = 0; i < e.results.size(); ++i) {
    const Result& r = e.results[i];
    text += i ? ", " : " ";
    if (r.scale != 1) text += format("{} * ", r.scale);
    text += r.collect == Collect::kStore ? reg(r.reg) : format("{}({})", kCollect[int(r.collect)], reg(r.reg));
  }
  return text;
}

DType joint(Function f, DType a, DType b) {
  const bool of_truth = f == Function::k_maximum || f == Function::k_minimum || f == Function::k_select ||
                        is_compare(f) || (f >= Function::k_bitwise_and && f <= Function::k_bitwise_xor);
  if (a == b) return a == DType::kBool && !of_truth ? DType::kFloat32 : a;
  if (a == DType::kBool || b == DType::kBool) return a == DType::kBool ? b : a;
  if (a == DType::kFloat64 || b == DType::kFloat64) return DType::kFloat64;
  return is_floating(a) || is_floating(b) ? DType::kFloat32 : DType::kInt64;
}

std::vector<DType> types_of(const Expression& e, std::vector<DType> types) {
  for (const Instruction& c : e.code) {
    if (c.function == Function::k_cast || c.function == Function::k_constant)
      types.push_back(c.dtype);
    else if (is_compare(c.function))
      types.push_back(DType::kBool);
    else if (c.function == Function::k_select)
      types.push_back(joint(c.function, types[size_t(c.b)], types[size_t(c.c)]));
    else {
      const DType a = types[size_t(c.a)];
      types.push_back(joint(c.function, a, describe(c.function).kind == Kind::kBinary ? types[size_t(c.b)] : a));
    }
  }
  return types;
}

std::string violation(const Expression& e) {
  for (size_t i = 0; i < e.code.size(); ++i) {
    const Instruction& c = e.code[i];
    const int operands[] = {c.a, c.b, c.c};
    for (int k = 0; k < arity(c.function); ++k)
      if (operands[k] < 0 || operands[k] >= int(e.inputs.size() + i))
        return format("r{} reads r{}, which does not exist yet", e.inputs.size() + i, operands[k]);
    if (c.function == Function::k_dropout && (c.b >= int(e.inputs.size()) || e.inputs[c.b] != Extent::kScalar))
      return format("the counter of the dropout in r{} is not a scalar operand", e.inputs.size() + i);
  }
  for (const Result& r : e.results)
    if (r.reg < 0 || r.reg >= int(e.inputs.size() + e.code.size())) return format("result r{} does not exist", r.reg);
  return {};
}

}  // namespace millpond::ops
