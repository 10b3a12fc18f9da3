#include <doctest/doctest.h>

#include "ops/fused.h"
#include "support/operators.h"

namespace millpond::test {

using backend::cpu_backend;
using ops::Collect;
using ops::Expression;
using ops::Extent;
using ops::Function;

namespace {
const std::pair<int64_t, int64_t> kSpaces[] = {{0, 3},   {3, 0},    {1, 1},   {1, 17},    {17, 1},   {7, 13},
                                               {31, 33}, {129, 65}, {300, 3}, {1, 20011}, {20011, 1}};
}

TEST_CASE("cpu fused: chains of every extent agree with the reference") {
  const Expression e{{Extent::kFull, Extent::kRow, Extent::kColumn, Extent::kScalar, Extent::kFull},
                     {{Function::k_add, 0, 1},
                      {Function::k_multiply, 5, 2},
                      {Function::k_subtract, 6, 3},
                      {Function::k_gate, 7, 4},
                      {Function::k_maximum, 7, 8}},
                     {{8}, {9}}};
  for (const auto& [rows, cols] : kSpaces)
    check_twin(cpu_backend(), ops::Fused(e, rows, cols, {type({rows, cols}), type({rows, cols})}),
               {random({rows, cols}, 1), random({cols}, 2), random({rows}, 3), random({}, 4), random({rows, cols}, 5)},
               scale(4));
}

TEST_CASE("cpu fused: every element-wise function, one at a time") {
  for (Function f : {
#define MP_UNARY(name, formula) Function::k_##name,
#define MP_BINARY(name, formula) Function::k_##name,
#define MP_COMPARE(name, formula) Function::k_##name,
#include "ops/functions.inc"
       }) {
    CAPTURE(to_string(f));
    const Expression e{{Extent::kFull, Extent::kFull}, {{f, 0, int16_t(ops::arity(f) == 2 ? 1 : -1)}}, {{2}}};
    for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{1, 1}, {3, 37}, {1, 1001}})
      check_twin(cpu_backend(), ops::Fused(e, rows, cols, {type({rows, cols})}),
                 {random({rows, cols}, 1, DType::kFloat32, 0.1, 3), random({rows, cols}, 2, DType::kFloat32, 0.1, 3)},
                 f == Function::k_sigmoid_cross_entropy ? scale(4) : ulps(f == Function::k_power ? 8 : 3.5));
  }
}

TEST_CASE("cpu fused: sums over rows, columns and everything agree with the reference") {
  for (const auto& [rows, cols] : kSpaces) {
    const Expression e{{Extent::kFull, Extent::kRow},
                       {{Function::k_multiply, 0, 1}},
                       {{2},
                        {2, Collect::kSumRows},
                        {2, Collect::kSumCols, 0.25f},
                        {2, Collect::kSumAll, 1.0f / 3},
                        {0, Collect::kSumRows}}};
    const ops::Fused op(e, rows, cols, {type({rows, cols}), type({cols}), type({rows}), type({}), type({cols})});
    check_twin(cpu_backend(), op, {random({rows, cols}, 1), random({cols}, 2)}, terms(double(rows * cols)));
    const Expression lone{{Extent::kFull}, {{Function::k_square, 0}}, {{1, Collect::kSumAll}}};
    check_twin(cpu_backend(), ops::Fused(lone, rows, cols, {type({})}), {random({rows, cols}, 3)},
               terms(double(rows * cols)));
  }
}

TEST_CASE("cpu fused: other dtypes, choices, constants and dropout agree with the reference") {
  for (const auto& [rows, cols] : kSpaces) {
    const Expression e{{Extent::kFull, Extent::kFull, Extent::kFull, Extent::kScalar},
                       {{Function::k_select, 1, 0, 2},
                        {.function = Function::k_constant, .immediate = 2.5f},
                        {Function::k_multiply, 4, 5},
                        {.function = Function::k_dropout, .a = 6, .b = 3, .immediate = 0.25f, .salt = 77},
                        {Function::k_greater, 7, 2},
                        {.function = Function::k_cast, .a = 6, .dtype = DType::kInt32},
                        {.function = Function::k_cast, .a = 9, .dtype = DType::kBool}},
                       {{7}, {8}, {9}, {10}}};
    const Shape s{rows, cols};
    check_twin(
        cpu_backend(),
        ops::Fused(e, rows, cols, {type(s), type(s, DType::kBool), type(s, DType::kInt32), type(s, DType::kBool)}),
        {random(s, 1, DType::kFloat32, -9, 9), random(s, 2, DType::kBool, 0, 2), random(s, 3, DType::kInt32, -5, 5),
         values({}, {20000001}, DType::kInt32)},
        exact());
    const Expression bytes{{Extent::kFull, Extent::kRow}, {{Function::k_add, 0, 1}}, {{2}}};
    check_twin(cpu_backend(), ops::Fused(bytes, rows, cols, {type(s)}),
               {random(s, 1, DType::kUInt8, 0, 255), random({cols}, 2, DType::kUInt8, 0, 255)}, exact());
  }
}

}  // namespace millpond::test
