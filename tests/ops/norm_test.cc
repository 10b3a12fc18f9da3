#include <doctest/doctest.h>

#include "ops/batch_norm.h"
#include "ops/batch_norm_backward.h"
#include "ops/layer_norm.h"
#include "ops/layer_norm_backward.h"
#include "support/operators.h"

namespace millpond::test {

using backend::reference_backend;

TEST_CASE("batch_norm: mean 0 and variance 1 over all but the last axis, then gamma and beta") {
  const auto r = run_operator(reference_backend(), ops::BatchNorm(0),
                              {values({2, 2}, {1, 10, 3, 30}, DType::kFloat64), values({2}, {1, 2}, DType::kFloat64),
                               values({2}, {0, 5}, DType::kFloat64)});
  CHECK(list(r[0]) == std::vector<double>{-1, 3, 1, 7});
  CHECK(list(r[1]) == std::vector<double>{2, 20});
  CHECK(list(r[2]) == std::vector<double>{1, 100});
}

TEST_CASE("layer_norm: mean 0 and variance 1 over the last axis; keeps mean and 1/deviation of each row") {
  const auto r = run_operator(reference_backend(), ops::LayerNorm(0),
                              {values({1, 2}, {1, 5}, DType::kFloat64), values({2}, {1, 1}, DType::kFloat64),
                               values({2}, {0, 1}, DType::kFloat64)});
  CHECK(list(r[0]) == std::vector<double>{-1, 2});
  CHECK(list(r[1]) == std::vector<double>{3});
  CHECK(list(r[2]) == std::vector<double>{0.5});
}

TEST_CASE("batch_norm and layer_norm: gradients agree with finite differences, also those through the statistics") {
  const std::vector<Tensor> x{random({2, 3, 4}, 1), random({4}, 2), random({4}, 3)};
  for (const std::vector<int>& outputs : {std::vector<int>{0}, {1, 2}, {0, 1, 2}}) {
    check_gradients(ops::BatchNorm(1e-3), x, {.outputs = outputs});
    check_gradients(ops::LayerNorm(1e-3), x, {.outputs = outputs});
  }
}

TEST_CASE("batch_norm and layer_norm: gradients of gradients agree with finite differences") {
  const std::vector<Tensor> x{random({3, 4}, 1), random({4}, 2), random({4}, 3)};
  check_gradients(ops::BatchNorm(0.1), x, {.outputs = {0}, .second = true});
  check_gradients(ops::LayerNorm(0.1), x, {.outputs = {0}, .second = true});
}

TEST_CASE("batch_norm: a gamma of the wrong length is refused with the cure") {
  CHECK(refusal_of(ops::BatchNorm(1e-3), {type({8, 4}), type({3}), type({4})}) ==
        "batch_norm: gamma is [3], but [4] is needed; give gamma the shape [4]");
  CHECK(refusal_of(ops::LayerNorm(1e-3), {type({8, 4}), type({4}), type({8})}) ==
        "layer_norm: beta is [8], but [4] is needed; give beta the shape [4]");
}

}  // namespace millpond::test
