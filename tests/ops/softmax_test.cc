#include <doctest/doctest.h>

#include "ops/softmax.h"
#include "ops/softmax_cross_entropy.h"
#include "ops/softmax_cross_entropy_backward.h"
#include "support/operators.h"

namespace millpond::test {

using backend::reference_backend;

TEST_CASE("softmax: rows sum to 1 and large logits do not overflow") {
  const auto y = list(
      run_operator(reference_backend(), ops::Softmax(), {values({2, 2}, {1000, 1000, 0, -2000}, DType::kFloat64)})[0]);
  CHECK(y == std::vector<double>{0.5, 0.5, 1, 0});
}

TEST_CASE("softmax: gradients and their gradients agree with finite differences") {
  check_gradients(ops::Softmax(), {random({2, 4}, 3)});
  check_gradients(ops::Softmax(), {random({2, 4}, 3)}, {.second = true});
}

TEST_CASE("softmax_cross_entropy: minus the logarithm of the label's probability") {
  const Tensor z = values({2, 2}, {0, 0, 3, 1000}, DType::kFloat64);
  CHECK(list(run_operator(reference_backend(), ops::SoftmaxCrossEntropy(),
                          {z, values({2}, {1, 0}, DType::kInt32)})[0]) == std::vector<double>{0.6931471805599453, 997});
}

TEST_CASE("softmax_cross_entropy: gradients and their gradients agree with finite differences") {
  const Tensor labels = values({2, 2}, {1, 0, 2, 2}, DType::kInt32);
  check_gradients(ops::SoftmaxCrossEntropy(), {random({2, 2, 3}, 4), labels});
  check_gradients(ops::SoftmaxCrossEntropy(), {random({2, 2, 3}, 4), labels}, {.second = true});
  check_gradients(ops::SoftmaxCrossEntropyBackward(), {random({2, 2, 3}, 4), labels, random({2, 2}, 5)});
}

TEST_CASE("softmax_cross_entropy: labels of the wrong shape or type are refused") {
  CHECK(refusal_of(ops::SoftmaxCrossEntropy(), {type({8, 10}), type({8, 1}, DType::kInt32)}) ==
        "softmax_cross_entropy: labels [8, 1] do not go with logits [8, 10]; give labels the shape [8]");
  CHECK(refusal_of(ops::SoftmaxCrossEntropy(), {type({8, 10}), type({8})}) ==
        "softmax_cross_entropy: labels is float32[8], but whole numbers are needed; cast labels to int32 first");
}

}  // namespace millpond::test
