#include <doctest/doctest.h>

#include "ops/conv2d.h"
#include "ops/conv2d_backward_filter.h"
#include "ops/conv2d_backward_input.h"
#include "support/operators.h"

namespace millpond::test {

using backend::reference_backend;
using ops::Window;

namespace {
struct Case {
  Shape x, filter;
  Window window;
  int64_t groups = 1;
};
std::vector<Case> cases() {
  return {
      {{2, 4, 5, 3}, {3, 3, 3, 2}, {.height = 3, .width = 3}},
      {{1, 5, 4, 2},
       {2, 3, 2, 3},
       {.height = 2, .width = 3, .stride_h = 2, .stride_w = 1, .top = 1, .bottom = 0, .left = 1, .right = 2}},
      {{1, 7, 7, 1}, {3, 2, 1, 2}, {.height = 3, .width = 2, .dilation_h = 2, .dilation_w = 3, .top = 2, .bottom = 1}},
      {{1, 4, 4, 4},
       {3, 3, 2, 6},
       {.height = 3, .width = 3, .stride_h = 2, .stride_w = 2, .top = 1, .bottom = 1, .left = 1, .right = 1},
       2},
      {{2, 3, 3, 3}, {2, 2, 1, 6}, {.height = 2, .width = 2}, 3},  // depthwise
      {{2, 4, 5, 3}, {1, 1, 3, 4}, {.height = 1, .width = 1, .stride_h = 3, .stride_w = 2}},
  };
}
Shape out(const Case& c) {
  return ops::Conv2D(c.window, c.groups).infer(std::vector{type(c.x), type(c.filter)})[0].shape;
}
}  // namespace

TEST_CASE("conv2d: a window sums its taps, NHWC against HWIO, and padding counts as zero") {
  const Tensor x = values({1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9}), f = values({2, 2, 1, 1}, {1, 10, 100, 1000});
  CHECK(list(run_operator(reference_backend(), ops::Conv2D({.height = 2, .width = 2}), {x, f})[0]) ==
        std::vector<double>{5421, 6532, 8754, 9865});
  const Window same{.height = 2, .width = 2, .stride_h = 2, .stride_w = 2, .bottom = 1, .right = 1};
  CHECK(list(run_operator(reference_backend(), ops::Conv2D(same), {x, f})[0]) == std::vector<double>{5421, 603, 87, 9});
}

TEST_CASE("conv2d: groups see their own channels only") {
  const Tensor x = values({1, 1, 1, 4}, {1, 2, 3, 4}), f = values({1, 1, 2, 2}, {1, 10, 100, 1000});
  // output 0 reads channels 0 and 1, output 1 reads 2 and 3
  CHECK(list(run_operator(reference_backend(), ops::Conv2D({}, 2), {x, f})[0]) == std::vector<double>{201, 4030});
}

TEST_CASE("Window: padding \"same\" is TensorFlow's: ceil(in / stride) out and the odd one at the end") {
  for (int64_t in = 1; in < 12; ++in)
    for (int64_t size = 1; size < 5; ++size)
      for (int64_t stride = 1; stride < 4; ++stride)
        for (int64_t dilation = 1; dilation < 3; ++dilation) {
          Window w{.height = size,
                   .width = size,
                   .stride_h = stride,
                   .stride_w = stride,
                   .dilation_h = dilation,
                   .dilation_w = dilation};
          w.pad_same(in, in);
          CHECK(w.out_height(in) == (in + stride - 1) / stride);
          CHECK((w.bottom == w.top || w.bottom == w.top + 1));
        }
}

TEST_CASE("conv2d: gradients agree with finite differences for strides, dilation, padding and groups") {
  for (const Case& c : cases()) {
    CAPTURE(to_string(c.window));
    check_gradients(ops::Conv2D(c.window, c.groups), {random(c.x, 1), random(c.filter, 2)});
  }
}

TEST_CASE("conv2d: the family is closed under gradients: those of both backward operators agree too") {
  for (const Case& c : cases()) {
    CAPTURE(to_string(c.window));
    check_gradients(ops::Conv2DBackwardInput(c.window, c.groups, c.x), {random(out(c), 3), random(c.filter, 4)});
    check_gradients(ops::Conv2DBackwardFilter(c.window, c.groups, c.filter), {random(c.x, 5), random(out(c), 6)});
  }
  const Case c = cases()[1];
  check_gradients(ops::Conv2D(c.window, c.groups), {random(c.x, 1), random(c.filter, 2)}, {.second = true});
}

TEST_CASE("conv2d: wrong channels, groups and windows are refused with the cure") {
  const ops::Conv2D conv({.height = 3, .width = 3});
  CHECK(refusal_of(conv, {type({8, 28, 28, 3}), type({3, 3, 1, 8})}) ==
        "conv2d: x [8, 28, 28, 3] has 3 channels, but the filter [3, 3, 1, 8] in 1 group wants 1; give the filter the "
        "shape [3, 3, 3, 8]");
  CHECK(refusal_of(conv, {type({8, 2, 28, 3}), type({3, 3, 3, 8})}) ==
        "conv2d: a window of 3 x 3 does not fit into the image [8, 2, 28, 3], which is 2 x 28 with its padding; use a "
        "smaller window, or padding \"same\"");
  CHECK(refusal_of(conv, {type({28, 28, 3}), type({3, 3, 3, 8})}) ==
        "conv2d: x is [28, 28, 3], which has 3 dimensions; give x 4 dimensions");
  CHECK(refusal_of(ops::Conv2DBackwardInput({.height = 3, .width = 3}, 1, {1, 5, 5, 2}),
                   {type({1, 4, 3, 7}), type({3, 3, 2, 7})}) ==
        "conv2d_backward_input: dy is [1, 4, 3, 7], but [1, 3, 3, 7] is needed; give dy the shape [1, 3, 3, 7]");
}

}  // namespace millpond::test
