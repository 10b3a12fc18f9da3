#include <doctest/doctest.h>

#include "ops/unary.h"
#include "support/operators.h"

namespace millpond::test {

using backend::reference_backend;

namespace {
std::vector<double> apply(ops::Function f, std::vector<double> x, DType dtype = DType::kFloat64) {
  return list(run_operator(reference_backend(), ops::Unary(f), {values({int64_t(x.size())}, x, dtype)})[0]);
}
const ops::Function kUnary[] = {
#define MP_UNARY(name, formula) ops::Function::k_##name,
#include "ops/functions.inc"
};
bool positive_only(ops::Function f) {
  return f == ops::Function::k_log || f == ops::Function::k_log1p || f == ops::Function::k_sqrt ||
         f == ops::Function::k_rsqrt;
}
}  // namespace

TEST_CASE("unary: the functions compute what they say") {
  CHECK(apply(ops::Function::k_negate, {1, -2}) == std::vector<double>{-1, 2});
  CHECK(apply(ops::Function::k_sign, {-3, 0, 0.5}) == std::vector<double>{-1, 0, 1});
  CHECK(apply(ops::Function::k_relu, {-1, 0, 2}) == std::vector<double>{0, 0, 2});
  CHECK(apply(ops::Function::k_square, {-3}) == std::vector<double>{9});
  CHECK(apply(ops::Function::k_rsqrt, {4}) == std::vector<double>{0.5});
  CHECK(apply(ops::Function::k_sigmoid, {0}) == std::vector<double>{0.5});
  CHECK(apply(ops::Function::k_erf, {1})[0] == doctest::Approx(0.8427007929497149));
}

TEST_CASE("unary: every floating type computes, whole numbers where it makes sense") {
  for (DType t : {DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kFloat16})
    CHECK(apply(ops::Function::k_exp, {0}, t) == std::vector<double>{1});
  for (DType t : {DType::kInt32, DType::kInt64})
    CHECK(apply(ops::Function::k_negate, {3, -4}, t) == std::vector<double>{-3, 4});
}

TEST_CASE("unary: gradients agree with finite differences, and for curved functions those of the gradients too") {
  for (ops::Function f : kUnary) {
    CAPTURE(to_string(f));
    const Tensor x = random({2, 3}, 11, DType::kFloat64, positive_only(f) ? 0.5 : -1.5, 2);
    check_gradients(ops::Unary(f), {x});
    if (f != ops::Function::k_sign) check_gradients(ops::Unary(f), {x}, {.second = true});
  }
}

TEST_CASE("unary: a whole number is refused where the result would not be one") {
  CHECK(refusal_of(ops::Unary(ops::Function::k_exp), {type({3}, DType::kInt32)}) ==
        "exp: x is int32[3], but a floating type is needed; cast x to float32 first");
  CHECK(refusal_of(ops::Unary(ops::Function::k_negate), {type({3}, DType::kBool)}) ==
        "negate: x is bool[3]; cast x to a number first");
}

}  // namespace millpond::test
