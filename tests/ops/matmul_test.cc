#include <doctest/doctest.h>

#include "ops/matmul.h"
#include "support/operators.h"

namespace millpond::test {

using backend::reference_backend;

TEST_CASE("matmul: rows times columns, either operand stored transposed") {
  const Tensor a = values({2, 3}, {1, 2, 3, 4, 5, 6}), b = values({3, 2}, {1, 0, 0, 1, 2, 2});
  const std::vector<double> wanted{7, 8, 16, 17};
  const Tensor at = values({3, 2}, {1, 4, 2, 5, 3, 6}), bt = values({2, 3}, {1, 0, 2, 0, 1, 2});
  CHECK(list(run_operator(reference_backend(), ops::MatMul(false, false), {a, b})[0]) == wanted);
  CHECK(list(run_operator(reference_backend(), ops::MatMul(true, false), {at, b})[0]) == wanted);
  CHECK(list(run_operator(reference_backend(), ops::MatMul(false, true), {a, bt})[0]) == wanted);
  CHECK(list(run_operator(reference_backend(), ops::MatMul(true, true), {at, bt})[0]) == wanted);
}

TEST_CASE("matmul: gradients and their gradients agree with finite differences for every transposition and batch") {
  const std::pair<Shape, Shape> batches[] = {{{}, {}}, {{2}, {2}}, {{2}, {}}, {{}, {2}}, {{2, 1}, {3}}};
  for (const auto& [p, q] : batches)
    for (bool ta : {false, true})
      for (bool tb : {false, true}) {
        auto shape = [](const Shape& lead, int64_t r, int64_t c) {
          std::vector<int64_t> dims(lead.begin(), lead.end());
          dims.insert(dims.end(), {r, c});
          return Shape(dims);
        };
        const Tensor a = random(ta ? shape(p, 3, 2) : shape(p, 2, 3), 1),
                     b = random(tb ? shape(q, 4, 3) : shape(q, 3, 4), 2);
        check_gradients(ops::MatMul(ta, tb), {a, b});
        check_gradients(ops::MatMul(ta, tb), {a, b}, {.second = true});
      }
}

TEST_CASE("matmul: counts a multiply-add as two") {
  const std::vector in{type({5, 3}), type({3, 7})};
  CHECK(ops::MatMul().flops(in, ops::MatMul().infer(in)) == 2.0 * 5 * 3 * 7);
}

TEST_CASE("matmul: sizes that do not meet are refused with both shapes and the cure") {
  CHECK(refusal_of(ops::MatMul(), {type({8, 100}), type({64, 10})}) ==
        "matmul: a [8, 100] has 100 columns, but b [64, 10] has 64 rows; give b 100 rows");
  CHECK(refusal_of(ops::MatMul(), {type({3}), type({3, 2})}) ==
        "matmul: a is [3] and b is [3, 2], but both need at least 2 dimensions; reshape a vector to [1, n] or [n, 1]");
  CHECK(refusal_of(ops::MatMul(), {type({2, 3, 3}), type({4, 3, 3})}) ==
        "matmul: the leading dimensions of a [2, 3, 3] and b [4, 3, 3] do not broadcast; make them equal, or one of "
        "them 1");
}

}  // namespace millpond::test
