#include <doctest/doctest.h>

#include "ops/binary.h"
#include "ops/select.h"
#include "support/operators.h"

namespace millpond::test {

using backend::reference_backend;
using ops::Function;

namespace {
std::vector<double> apply(Function f, std::vector<double> x, std::vector<double> y, DType dtype = DType::kFloat64) {
  return list(run_operator(reference_backend(), ops::Binary(f),
                           {values({int64_t(x.size())}, x, dtype), values({int64_t(y.size())}, y, dtype)})[0]);
}
}  // namespace

TEST_CASE("binary: the functions compute what they say") {
  CHECK(apply(Function::k_subtract, {5, 1}, {2, 4}) == std::vector<double>{3, -3});
  CHECK(apply(Function::k_divide, {1, 9}, {4, 3}) == std::vector<double>{0.25, 3});
  CHECK(apply(Function::k_maximum, {1, 5}, {3, 2}) == std::vector<double>{3, 5});
  CHECK(apply(Function::k_power, {2, 9}, {3, 0.5}) == std::vector<double>{8, 3});
  CHECK(apply(Function::k_gate, {7, 8, 9}, {1, 0, -1}) == std::vector<double>{7, 0, 0});
  CHECK(apply(Function::k_greater_equal, {1, 2, 3}, {2}) == std::vector<double>{0, 1, 1});
  CHECK(apply(Function::k_sigmoid_cross_entropy, {0, 1000}, {1, 1}) == std::vector<double>{0.6931471805599453, 0});
}

TEST_CASE("binary: a comparison gives bool, int32 wraps around, both shapes broadcast") {
  CHECK(ops::Binary(Function::k_equal).infer(std::vector{type({2, 1}), type({3})}) ==
        std::vector{type({2, 3}, DType::kBool)});
  CHECK(apply(Function::k_add, {2147483647}, {1}, DType::kInt32) == std::vector<double>{-2147483648.0});
  const Tensor z = run_operator(reference_backend(), ops::Binary(Function::k_add),
                                {values({2, 1}, {10, 20}), values({3}, {1, 2, 3})})[0];
  CHECK(list(z) == std::vector<double>{11, 12, 13, 21, 22, 23});
}

TEST_CASE("binary: gradients and their gradients agree with finite differences, broadcast or not") {
  for (Function f : {Function::k_add, Function::k_subtract, Function::k_multiply, Function::k_divide,
                     Function::k_maximum, Function::k_minimum, Function::k_power}) {
    CAPTURE(to_string(f));
    const bool smooth = f == Function::k_multiply || f == Function::k_divide || f == Function::k_power;
    for (const auto& [x, y] : std::vector<std::pair<Shape, Shape>>{
             {{2, 3}, {2, 3}}, {{2, 3}, {3}}, {{2, 1, 3}, {4, 1}}, {{}, {2, 2}}, {{1, 1}, {3}}}) {
      check_gradients(ops::Binary(f), {random(x, 1, DType::kFloat64, 0.5, 2), random(y, 2, DType::kFloat64, 0.5, 2)});
      if (smooth)
        check_gradients(ops::Binary(f), {random(x, 3, DType::kFloat64, 0.5, 2), random(y, 4, DType::kFloat64, 0.5, 2)},
                        {.second = true});
    }
  }
  check_gradients(ops::Binary(Function::k_sigmoid_cross_entropy), {random({3, 2}, 5), random({3, 2}, 6)});
  check_gradients(ops::Binary(Function::k_sigmoid_cross_entropy), {random({3, 2}, 5), random({3, 2}, 6)},
                  {.second = true});
}

TEST_CASE("binary: gate passes its gradient to x alone, and only where y is positive") {
  check_gradients_of(
      [](graph::Builder& b, std::span<const Value> x) {
        return ops::sum_to(b, ops::gate(b, x[0], b.constant(values({4}, {1, -1, 0, 2}, DType::kFloat64))), {});
      },
      {random({4}, 3)});
}

TEST_CASE("binary: at a tie maximum and minimum give the gradient to x, as TensorFlow does") {
  for (Function f : {Function::k_maximum, Function::k_minimum}) {
    graph::Graph g;
    graph::Builder b(g);
    const Value x = b.input("x", type({2}, DType::kFloat64)), y = b.input("y", type({2}, DType::kFloat64));
    const Value z = ops::binary(b, f, x, y);
    const Value dz = b.constant(values({2}, {3, 5}, DType::kFloat64));
    const std::vector<Value> grads = z.node->op->backward(b, *z.node, std::vector{dz});
    const Tensor same = values({2}, {4, 4}, DType::kFloat64);
    const auto found = evaluate(g, {same, same}, grads);
    CHECK(list(found[0]) == std::vector<double>{3, 5});
    CHECK(list(found[1]) == std::vector<double>{0, 0});
  }
}

TEST_CASE("binary: shapes that do not broadcast and types that differ are refused with both") {
  CHECK(refusal_of(ops::Binary(Function::k_add), {type({2, 3}), type({4})}) ==
        "add: shapes [2, 3] and [4] do not broadcast: 3 against 4 in dimension 1 from the end; make the dimensions "
        "equal, or one of them 1");
  CHECK(refusal_of(ops::Binary(Function::k_add), {type({2}), type({2}, DType::kInt32)}) ==
        "add: x is float32[2], but y is int32[2]; cast one of them; float32 is not changed silently");
}

TEST_CASE("select: takes x where the condition holds, broadcasts all three, and its gradient follows the choice") {
  const Tensor c = values({2, 1}, {1, 0}, DType::kBool);
  CHECK(list(run_operator(reference_backend(), ops::Select(), {c, values({3}, {1, 2, 3}), values({}, {9})})[0]) ==
        std::vector<double>{1, 2, 3, 9, 9, 9});
  check_gradients(ops::Select(), {c, random({3}, 1), random({}, 2)});
  check_gradients(ops::Select(), {c, random({2, 3}, 1), random({1, 3}, 2)});
  CHECK(refusal_of(ops::Select(), {type({2}), type({2}), type({2})}) ==
        "select: condition is float32[2], but bool is needed; cast condition to bool");
}

}  // namespace millpond::test
