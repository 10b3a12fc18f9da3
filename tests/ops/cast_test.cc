#include <doctest/doctest.h>

#include "ops/argmax.h"
#include "ops/cast.h"
#include "ops/one_hot.h"
#include "support/operators.h"

namespace millpond::test {

using backend::reference_backend;

TEST_CASE("cast: goes toward zero, makes the least number of what does not fit and truth of what is not zero") {
  auto cast = [](std::vector<double> v, DType from, DType to) {
    return list(run_operator(reference_backend(), ops::Cast(to), {values({int64_t(v.size())}, v, from)})[0]);
  };
  CHECK(cast({-1.7, 1.7, 1e20}, DType::kFloat32, DType::kInt32) == std::vector<double>{-1, 1, -2147483648.0});
  CHECK(cast({0, 0.25, -3}, DType::kFloat32, DType::kBool) == std::vector<double>{0, 1, 1});
  CHECK(cast({300, -1}, DType::kInt32, DType::kUInt8) == std::vector<double>{44, 255});
  CHECK(cast({1.00390625}, DType::kFloat32, DType::kBFloat16) == std::vector<double>{1});  // a tie goes to even
}

TEST_CASE("cast: agrees with Tensor::astype for every pair of types") {
  for (DType from : kAllDTypes)
    for (DType to : kAllDTypes) {
      const Tensor x = random({50}, 4, DType::kFloat64, -100, 300).astype(from);
      CHECK(list(run_operator(reference_backend(), ops::Cast(to), {x})[0]) == list(x.astype(to)));
    }
}

TEST_CASE("cast: a gradient returns in the type of x, and none flows through whole numbers") {
  graph::Graph g;
  graph::Builder b(g);
  const Value x = b.input("x", type({2}));
  const Value y = ops::cast(b, x, DType::kBFloat16), z = ops::cast(b, x, DType::kInt32);
  CHECK(y.node->op->backward(b, *y.node, std::vector{y})[0].type() == type({2}));
  CHECK(!z.node->op->backward(b, *z.node, std::vector{y})[0]);
  CHECK(ops::cast(b, x, DType::kFloat32) == x);
}

TEST_CASE("argmax: the first largest wins, the last axis goes") {
  CHECK(list(run_operator(reference_backend(), ops::ArgMax(), {values({2, 3}, {1, 7, 7, 5, 4, 3})})[0]) ==
        std::vector<double>{1, 0});
  CHECK(ops::ArgMax().infer(std::vector{type({4, 2, 3})}) == std::vector{type({4, 2}, DType::kInt32)});
  CHECK(refusal_of(ops::ArgMax(), {type({4, 0})}) ==
        "argmax: x [4, 0] has no element along its last axis; give x at least one class");
}

TEST_CASE("one_hot: 1 at the label, and nothing at all for a label out of range") {
  CHECK(list(run_operator(reference_backend(), ops::OneHot(3, DType::kFloat32),
                          {values({3}, {2, 0, 5}, DType::kInt32)})[0]) ==
        std::vector<double>{0, 0, 1, 1, 0, 0, 0, 0, 0});
  CHECK(refusal_of(ops::OneHot(3, DType::kFloat32), {type({2})}) ==
        "one_hot: labels is float32[2], but whole numbers are needed; cast labels to int32 first");
}

}  // namespace millpond::test
