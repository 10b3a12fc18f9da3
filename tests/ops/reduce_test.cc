#include <doctest/doctest.h>

#include "ops/reduce.h"
#include "ops/unary.h"
#include "passes/passes.h"
#include "support/operators.h"

namespace millpond::test {

using backend::reference_backend;
using ops::Reduce;
using Kind = ops::Reduce::Kind;

TEST_CASE("reduce: sums, means and maxima over any axes") {
  const Tensor x = values({2, 3}, {1, 2, 3, 4, 5, 6});
  auto run = [&](Kind k, std::vector<int> axes, bool keep = false) {
    return run_operator(reference_backend(), Reduce(k, axes, keep), {x})[0];
  };
  CHECK(list(run(Kind::kSum, {0})) == std::vector<double>{5, 7, 9});
  CHECK(list(run(Kind::kSum, {1})) == std::vector<double>{6, 15});
  CHECK(list(run(Kind::kMean, {0, 1})) == std::vector<double>{3.5});
  CHECK(list(run(Kind::kMax, {1})) == std::vector<double>{3, 6});
  CHECK(run(Kind::kMax, {0}, true).shape() == Shape{1, 3});
}

TEST_CASE("reduce: an empty sum is 0 and a mean of a million equal float32 is that number") {
  CHECK(list(run_operator(reference_backend(), Reduce(Kind::kSum, {0}, false), {Tensor(DType::kFloat32, {0, 2})})[0]) ==
        std::vector<double>{0, 0});
  Tensor many(DType::kFloat32, {1000000});
  for (float& f : many.values<float>()) f = 0.1f;
  CHECK(run_operator(reference_backend(), Reduce(Kind::kMean, {0}, false), {many})[0].at(0) == double(0.1f));
}

TEST_CASE("reduce: negative axes count from the end, and none means all") {
  graph::Graph g;
  graph::Builder b(g);
  const Value x = b.input("x", type({2, 3, 4}));
  CHECK(ops::sum(b, x, {-1}).shape() == Shape{2, 3});
  CHECK(ops::sum(b, x, {-1, 0}, true).shape() == Shape{1, 3, 1});
  CHECK(ops::sum(b, x).shape() == Shape{});
  CHECK_THROWS_AS(ops::sum(b, x, {0, -3}), Error);
}

TEST_CASE("reduce: gradients agree with finite differences, and those of the square of a sum once more") {
  for (Kind k : {Kind::kSum, Kind::kMean, Kind::kMax})
    for (const std::vector<int>& axes : {std::vector<int>{0}, {1}, {0, 2}, {0, 1, 2}})
      for (bool keep : {false, true}) check_gradients(Reduce(k, axes, keep), {random({2, 3, 4}, 5)});
  for (Kind k : {Kind::kSum, Kind::kMean, Kind::kMax})
    check_gradients_of(
        [k](graph::Builder& b, std::span<const Value> x) {
          const Value loss = ops::sum(b, ops::square(b, ops::reduce(b, k, x[0], {1})));
          const Value dx = passes::gradients(b, loss, x)[0];
          return ops::sum(b, ops::square(b, dx));
        },
        {random({3, 4}, 2)});
}

TEST_CASE("reduce: the gradient of a maximum is shared equally among ties, as in TensorFlow") {
  graph::Graph g;
  graph::Builder b(g);
  const Value x = b.input("x", type({1, 4}));
  const Value y = ops::max(b, x, {1});
  const auto grads = y.node->op->backward(b, *y.node, std::vector{b.constant(values({1}, {6}))});
  CHECK(list(evaluate(g, {values({1, 4}, {7, 2, 7, 7})}, grads)[0]) == std::vector<double>{2, 0, 2, 2});
}

TEST_CASE("reduce: axes that are not there, and means of whole numbers, are refused") {
  CHECK(refusal_of(Reduce(Kind::kSum, {2}, false), {type({2, 3})}) == "sum: axis 2 of x [2, 3]; x has 2 dimensions");
  CHECK(refusal_of(Reduce(Kind::kMean, {0}, false), {type({2}, DType::kInt32)}) ==
        "mean: x is int32[2], but a floating type is needed; cast x to float32 first");
}

}  // namespace millpond::test
