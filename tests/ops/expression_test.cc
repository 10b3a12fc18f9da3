#include <doctest/doctest.h>

#include "ops/conv2d.h"
#include "ops/dropout.h"
#include "ops/fused.h"
#include "ops/matmul.h"
#include "support/operators.h"

namespace millpond::test {

using backend::reference_backend;
using ops::Collect;
using ops::Expression;
using ops::Extent;
using ops::Function;

TEST_CASE("Expression: prints its steps, extents and results") {
  const Expression e{{Extent::kFull, Extent::kRow},
                     {{Function::k_add, 0, 1},
                      {Function::k_relu, 2},
                      {.function = Function::k_constant, .immediate = 0.5f},
                      {Function::k_multiply, 3, 4}},
                     {{3}, {5, Collect::kSumRows, 0.25f}}};
  CHECK(to_string(e) ==
        "r2 = add(r0, r1.row); r3 = relu(r2); r4 = constant 0.5; r5 = multiply(r3, r4); -> r3, 0.25 * sum_rows(r5)");
  CHECK(violation(e).empty());
  CHECK(ops::violation({{Extent::kFull}, {{Function::k_add, 0, 1}}, {{1}}}) == "r1 reads r1, which does not exist yet");
}

TEST_CASE("Function: names are found again, and an unknown one is refused with all that are known") {
  CHECK(ops::parse_function("tanh") == Function::k_tanh);
  CHECK(ops::arity(Function::k_select) == 3);
  CHECK(is_compare(Function::k_equal));
  CHECK_THROWS_AS(ops::parse_function("select"), Error);
}

TEST_CASE("fused: stores and sums in one sweep; every extent reads its own place") {
  const Expression e{{Extent::kFull, Extent::kRow, Extent::kColumn, Extent::kScalar},
                     {{Function::k_add, 0, 1}, {Function::k_add, 4, 2}, {Function::k_multiply, 5, 3}},
                     {{6}, {6, Collect::kSumRows}, {6, Collect::kSumCols}, {6, Collect::kSumAll, 0.5f}}};
  const ops::Fused op(e, 2, 3, {type({2, 3}), type({3}), type({2}), type({})});
  const auto r = run_operator(
      reference_backend(), op,
      {values({2, 3}, {0, 0, 0, 1, 1, 1}), values({3}, {1, 2, 3}), values({2}, {10, 20}), values({}, {2})});
  CHECK(list(r[0]) == std::vector<double>{22, 24, 26, 44, 46, 48});
  CHECK(list(r[1]) == std::vector<double>{66, 70, 74});
  CHECK(list(r[2]) == std::vector<double>{72, 138});
  CHECK(list(r[3]) == std::vector<double>{105});
}

TEST_CASE("fused: a dropout inside drops what the operator drops") {
  const Tensor x = random({9, 5}, 3), counter = values({}, {41}, DType::kInt32);
  const Expression e{{Extent::kFull, Extent::kScalar},
                     {{.function = Function::k_dropout, .a = 0, .b = 1, .immediate = 0.3f, .salt = 99}},
                     {{2}}};
  const ops::Fused op(e, 9, 5, {type({9, 5})});
  CHECK(list(run_operator(reference_backend(), op, {x, counter})[0]) ==
        list(run_operator(reference_backend(), ops::Dropout(0.3, 99), {x, counter})[0]));
}

TEST_CASE("fused: comparisons, choices and whole numbers keep their meaning; results take their dtype") {
  const Expression e{{Extent::kFull, Extent::kFull},
                     {{Function::k_greater, 0, 1},
                      {Function::k_select, 2, 0, 1},
                      {.function = Function::k_cast, .a = 3, .dtype = DType::kInt32}},
                     {{2}, {4}}};
  const ops::Fused op(e, 1, 3, {type({3}, DType::kBool), type({3}, DType::kInt32)});
  const auto r =
      run_operator(reference_backend(), op, {values({3}, {1.5, -2.5, 7}), values({3}, {1, 2, 7}, DType::kUInt8)});
  CHECK(list(r[0]) == std::vector<double>{1, 0, 0});
  CHECK(list(r[1]) == std::vector<double>{1, 2, 7});
}

TEST_CASE("epilogue: a product or convolution with one is the product or convolution followed by it") {
  const Expression bias_relu{
      {Extent::kFull, Extent::kRow}, {{Function::k_add, 0, 1}, {Function::k_relu, 2}}, {{3}, {3, Collect::kSumRows}}};
  const Tensor a = values({2, 2}, {1, -1, 2, 0}), w = values({2, 2}, {1, 2, 3, 4}), bias = values({2}, {1, 1});
  const auto r = run_operator(reference_backend(), ops::MatMul(false, false, bias_relu), {a, w, bias});
  CHECK(list(r[0]) == std::vector<double>{0, 0, 3, 5});
  CHECK(list(r[1]) == std::vector<double>{3, 5});
  const auto c = run_operator(reference_backend(), ops::Conv2D({}, 1, bias_relu),
                              {a.reshaped({1, 2, 1, 2}), w.reshaped({1, 1, 2, 2}), bias});
  CHECK(c[0].shape() == Shape{1, 2, 1, 2});
  CHECK(list(c[0]) == list(r[0]));
}

TEST_CASE("epilogue: an operand that does not fit is refused with the expression") {
  const Expression e{{Extent::kFull, Extent::kRow}, {{Function::k_add, 0, 1}}, {{2}}};
  CHECK(refusal_of(ops::MatMul(false, false, e), {type({2, 3}), type({3, 4}), type({3})}) ==
        "matmul: operand 1 is float32[3], but 4 elements are needed in the epilogue \"r2 = add(r0, r1.row); -> r2\" "
        "over float32[2, 4]");
}

}  // namespace millpond::test
