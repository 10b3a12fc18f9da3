#include <doctest/doctest.h>

#include "ops/average_pool2d.h"
#include "ops/average_pool2d_backward.h"
#include "ops/max_pool2d.h"
#include "ops/max_pool2d_backward.h"
#include "support/operators.h"

namespace millpond::test {

using backend::reference_backend;
using ops::Window;

namespace {
const std::vector<Window> kWindows = {
    {.height = 2, .width = 2, .stride_h = 2, .stride_w = 2},
    {.height = 3, .width = 2, .stride_h = 1, .stride_w = 2, .top = 1, .bottom = 1, .left = 0, .right = 1},
    {.height = 2, .width = 2, .dilation_h = 2, .dilation_w = 2},
    {.height = 3, .width = 3, .stride_h = 2, .stride_w = 2, .top = 1, .bottom = 1, .left = 1, .right = 1},
};
}

TEST_CASE("max_pool2d: the largest of each window; padding never wins, even against negative numbers") {
  const Tensor x = values({1, 2, 2, 1}, {-4, -3, -2, -1});
  CHECK(list(run_operator(reference_backend(), ops::MaxPool2D({.height = 2, .width = 2, .top = 1, .left = 1}),
                          {x})[0]) == std::vector<double>{-4, -3, -2, -1});
}

TEST_CASE("max_pool2d_backward: of equal values the first gets everything") {
  const Tensor x = values({1, 2, 2, 1}, {5, 5, 5, 5}), dy = values({1, 1, 1, 1}, {3});
  const Tensor winners = run_operator(reference_backend(), ops::MaxPool2D(kWindows[0]), {x})[1];
  CHECK(list(run_operator(reference_backend(), ops::MaxPool2DBackward(kWindows[0], x.shape()), {winners, dy})[0]) ==
        std::vector<double>{3, 0, 0, 0});
}

TEST_CASE("average_pool2d: padding does not count") {
  const Tensor x = values({1, 2, 2, 1}, {1, 2, 3, 4});
  CHECK(list(run_operator(reference_backend(), ops::AveragePool2D({.height = 2, .width = 2, .top = 1, .left = 1}),
                          {x})[0]) == std::vector<double>{1, 1.5, 2, 2.5});
}

TEST_CASE("pools: gradients agree with finite differences") {
  for (const Window& w : kWindows) {
    CAPTURE(to_string(w));
    const Tensor x = random({2, 5, 4, 2}, 9);
    check_gradients(ops::MaxPool2D(w), {x});
    check_gradients(ops::AveragePool2D(w), {x});
    const Shape y = ops::AveragePool2D(w).infer(std::vector{type(x.shape())})[0].shape;
    check_gradients(ops::AveragePool2DBackward(w, x.shape()), {random(y, 2)});
  }
}

TEST_CASE("pools: a second derivative of max-pooling is refused by name; a window too large too") {
  CHECK_THROWS_WITH_AS(check_gradients(ops::MaxPool2D(kWindows[0]), {random({1, 2, 2, 1})}, {.second = true}),
                       "max_pool2d_backward: second derivatives of max-pooling are not there yet", Error);
  CHECK(refusal_of(ops::MaxPool2D(kWindows[0]), {type({1, 1, 8, 3})}) ==
        "max_pool2d: a window of 2 x 2 does not fit into the image [1, 1, 8, 3], which is 1 x 8 with its padding; use "
        "a smaller window, or padding \"same\"");
}

}  // namespace millpond::test
