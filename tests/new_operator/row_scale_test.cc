#include <doctest/doctest.h>

#include "ops/row_scale.h"
#include "support/operators.h"

namespace millpond::test {

TEST_CASE("row_scale: every backend agrees with the reference") {
  for (const Shape& shape : awkward_shapes(2))
    check_twin(backend::cpu_backend(), ops::RowScale(), {random(shape, 1), random({shape[1]}, 2)}, ulps(1));
}

TEST_CASE("row_scale: gradients agree with finite differences") {
  check_gradients(ops::RowScale(), {random({3, 5}, 1), random({5}, 2)});
}

TEST_CASE("row_scale: a gain of the wrong length is refused with both shapes and the cure") {
  CHECK(refusal_of(ops::RowScale(), {type({8, 4}), type({3})}) ==
        "row_scale: gain is [3], but x is [8, 4]; give gain one value for each column of x");
}

TEST_CASE(
    "an operator without a fast kernel runs the reference kernel, and the backend says by itself that it is slow") {
  const backend::Request large{{type({100, 100}), type({100})}, {type({100, 100})}, 1},
      small{{type({2, 2}), type({2})}, {type({2, 2})}, 1};
  CHECK(backend::cpu_backend().make(ops::RowScale(), large)->slow());
  CHECK(!backend::cpu_backend().make(ops::RowScale(), small)->slow());
  CHECK(!backend::cpu_backend().offers("row_scale"));
}

}  // namespace millpond::test
