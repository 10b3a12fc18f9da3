#include <doctest/doctest.h>

#include "ops/attention.h"
#include "ops/attention_backward.h"
#include "ops/binary.h"
#include "ops/matmul.h"
#include "ops/softmax.h"
#include "support/operators.h"

namespace millpond::test {

using backend::reference_backend;

TEST_CASE("attention: is softmax(scale q k^T) v, and lse is the logarithm of the row's sum") {
  const std::vector<Tensor> qkv{random({2, 2, 5, 3}, 1, DType::kFloat64), random({2, 2, 5, 3}, 2, DType::kFloat64),
                                random({2, 2, 5, 3}, 3, DType::kFloat64)};
  graph::Graph g;
  graph::Builder b(g);
  std::vector<Value> x;
  for (const Tensor& t : qkv) x.push_back(b.input("x", {t.dtype(), t.shape()}));
  const Value scores = ops::multiply(b, ops::matmul(b, x[0], x[1], false, true), 0.7);
  const Value plain = ops::matmul(b, ops::softmax(b, scores), x[2]);
  const auto both = evaluate(g, qkv, {plain, ops::attention(b, x[0], x[1], x[2], false, 0.7)[0]});
  for (int64_t i = 0; i < both[0].size(); ++i) CHECK(both[0].at(i) == doctest::Approx(both[1].at(i)).epsilon(1e-12));
}

TEST_CASE("attention: a causal row sees nothing after itself") {
  const Tensor q = values({1, 1, 2, 1}, {0, 0}, DType::kFloat64), v = values({1, 1, 2, 1}, {3, 5}, DType::kFloat64);
  const auto r = run_operator(reference_backend(), ops::Attention(true, 1), {q, q, v});
  CHECK(list(r[0]) == std::vector<double>{3, 4});
  CHECK(list(r[1]) == std::vector<double>{0, 0.6931471805599453});
}

TEST_CASE("attention: gradients agree with finite differences, causal or not") {
  for (bool causal : {false, true})
    check_gradients(ops::Attention(causal, 0.6),
                    {random({1, 2, 3, 2}, 1), random({1, 2, 3, 2}, 2), random({1, 2, 3, 2}, 3)}, {.outputs = {0}});
}

TEST_CASE("attention: what has no gradient is refused by name; shapes must agree") {
  const std::vector<Tensor> x{random({1, 1, 2, 2}, 1), random({1, 1, 2, 2}, 2), random({1, 1, 2, 2}, 3)};
  CHECK_THROWS_WITH_AS(check_gradients(ops::Attention(false, 1), x),
                       "attention: a gradient through the log-sum-exp of the scores is not there", Error);
  CHECK_THROWS_WITH_AS(check_gradients(ops::Attention(false, 1), x, {.outputs = {0}, .second = true}),
                       "attention_backward: second derivatives of attention are not there yet", Error);
  CHECK(refusal_of(ops::Attention(false, 1), {type({1, 2, 3, 4}), type({1, 2, 5, 4}), type({1, 2, 5, 4})}) ==
        "attention: k is [1, 2, 5, 4], but [1, 2, 3, 4] is needed; give k the shape [1, 2, 3, 4]");
}

}  // namespace millpond::test
