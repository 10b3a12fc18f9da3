#include <doctest/doctest.h>

#include <cmath>

#include "ops/conv2d.h"
#include "ops/conv2d_backward_filter.h"
#include "ops/conv2d_backward_input.h"
#include "ops/conv_pool.h"
#include "ops/conv_pool_backward.h"
#include "ops/conv_pool_backward_input.h"
#include "support/operators.h"

namespace millpond::test {

using backend::cpu_backend;
using ops::Extent;
using ops::Function;
using ops::Window;

namespace {
struct Case {
  Shape x;
  int64_t height, width, out;
  Window window;
  int64_t groups = 1;
  Shape filter() const { return {height, width, x[3] / groups, out}; }
};
Case make(Shape x, int64_t height, int64_t width, int64_t out, Window w = {}, int64_t groups = 1) {
  w.height = height, w.width = width;
  return {x, height, width, out, w, groups};
}
Window same(const Shape& x, int64_t size, int64_t stride = 1, int64_t dilation = 1) {
  Window w{.height = size,
           .width = size,
           .stride_h = stride,
           .stride_w = stride,
           .dilation_h = dilation,
           .dilation_w = dilation};
  w.pad_same(x[1], x[2]);
  return w;
}
std::vector<Case> cases() {
  return {
      make({1, 1, 1, 1}, 1, 1, 1),
      make({0, 5, 5, 3}, 3, 3, 4),
      make({2, 7, 9, 3}, 3, 3, 5),
      make({2, 12, 11, 3}, 3, 3, 32),
      make({1, 10, 37, 1}, 5, 5, 16),
      make({2, 9, 9, 16}, 3, 3, 17, same({2, 9, 9, 16}, 3)),
      make({2, 8, 8, 64}, 1, 1, 33),
      make({2, 8, 8, 17}, 1, 1, 16, same({2, 8, 8, 17}, 1, 2)),
      make({1, 14, 15, 8}, 3, 3, 8, same({1, 14, 15, 8}, 3, 2)),
      make({1, 23, 24, 3}, 7, 7, 16, same({1, 23, 24, 3}, 7, 2)),
      make({1, 12, 12, 4}, 3, 3, 6, same({1, 12, 12, 4}, 3, 1, 2)),
      make({2, 6, 7, 8}, 3, 3, 8, same({2, 6, 7, 8}, 3), 2),
      make({2, 6, 7, 12}, 3, 3, 12, same({2, 6, 7, 12}, 3), 12),
      make({1, 6, 5, 3}, 2, 4, 6, {.stride_h = 2, .top = 1, .left = 3, .right = 1}, 3),
      make({1, 30, 40, 32}, 3, 3, 64),
      // Channels that end in half a vector; windows that stick out of the image, some on both sides.
      make({2, 5, 6, 18}, 7, 7, 20, same({2, 5, 6, 18}, 7)),
      make({2, 3, 4, 5}, 7, 6, 11, {.top = 4, .bottom = 4, .left = 3, .right = 5}),
      make({2, 11, 9, 24}, 6, 6, 19, same({2, 11, 9, 24}, 6)),
      make({3, 9, 12, 12}, 6, 6, 41),
      make({2, 13, 15, 3}, 5, 5, 9, same({2, 13, 15, 3}, 5, 2)),
      make({2, 9, 11, 51}, 2, 2, 52, same({2, 9, 11, 51}, 2)),
      // Deep and small: blocks go over several images.
      make({5, 13, 15, 19}, 3, 3, 35, same({5, 13, 15, 19}, 3)),
      make({7, 7, 6, 40}, 3, 3, 70, same({7, 7, 6, 40}, 3)),
      make({3, 11, 13, 20}, 5, 5, 37, same({3, 11, 13, 20}, 5)),
      make({6, 9, 8, 24}, 4, 2, 33),
      make({2, 17, 16, 18}, 5, 5, 20, same({2, 17, 16, 18}, 5, 2)),
      make({2, 12, 13, 17}, 3, 3, 19, {.stride_h = 3, .stride_w = 2, .top = 1}),
  };
}
Shape out(const Case& c) {
  return ops::Conv2D(c.window, c.groups).infer(std::vector{type(c.x), type(c.filter())})[0].shape;
}
}  // namespace

TEST_CASE("cpu conv2d: agrees with the reference for strides, dilation, padding and groups") {
  for (const Case& c : cases()) {
    const Tensor x = random(c.x, 1), f = random(c.filter(), 2), bias = random({c.out}, 3);
    const double taps = double(c.height * c.width * c.x[3] / c.groups);
    check_twin(cpu_backend(), ops::Conv2D(c.window, c.groups), {x, f}, terms(taps));
    const ops::Expression epilogue{
        {Extent::kFull, Extent::kRow}, {{Function::k_add, 0, 1}, {Function::k_relu, 2}}, {{3}}};
    check_twin(cpu_backend(), ops::Conv2D(c.window, c.groups, epilogue), {x, f, bias}, terms(taps + 1));
  }
}

TEST_CASE("cpu conv2d_backward_input: agrees with the reference") {
  for (const Case& c : cases())
    check_twin(cpu_backend(), ops::Conv2DBackwardInput(c.window, c.groups, c.x),
               {random(out(c), 1), random(c.filter(), 2)}, terms(double(c.height * c.width * c.out / c.groups)));
}

TEST_CASE("cpu conv2d_backward_filter: agrees with the reference") {
  for (const Case& c : cases())
    check_twin(cpu_backend(), ops::Conv2DBackwardFilter(c.window, c.groups, c.filter()),
               {random(c.x, 1), random(out(c), 2)}, terms(double(out(c)[0] * out(c)[1] * out(c)[2])));
}

TEST_CASE("cpu conv_pool: pooled values and gradients agree, and its winners are places of a largest value") {
  for (const Window& pool : {Window{.height = 2, .width = 2, .stride_h = 2, .stride_w = 2},
                             Window{.height = 3, .width = 2, .stride_h = 3, .stride_w = 2}, Window{}})
    for (const Case& c : cases()) {
      if (c.groups > 1 || out(c)[1] < pool.height || out(c)[2] < pool.width) continue;
      const std::vector<Tensor> in{random(c.x, 1), random(c.filter(), 2), random({c.out}, 3)};
      const double taps = double(c.height * c.width * c.x[3]);
      const ops::ConvPool op(c.window, pool);
      check_twin(cpu_backend(), op, in, terms(taps + 1), {0});

      // Winners may differ from the twin's only among values that are equal but for rounding: where the convolution at
      // the winner's place, computed exactly, is within the tolerance of the pooled value.
      const auto fast = run_operator(cpu_backend(), op, in);
      const ops::Expression bias{{Extent::kFull, Extent::kRow}, {{Function::k_add, 0, 1}}, {{2}}};
      std::vector<Tensor> magnitudes;
      for (const Tensor& t : in) {
        magnitudes.push_back(t.astype(t.dtype()));
        for (float& v : magnitudes.back().values<float>()) v = std::abs(v);
      }
      const Tensor y = run_operator(backend::reference_backend(), ops::Conv2D(c.window, 1, bias), in)[0];
      const Tensor sums = run_operator(backend::reference_backend(), ops::Conv2D(c.window, 1, bias), magnitudes)[0];
      const Shape cells = fast[0].shape();
      const int64_t bytes = fast[1].shape()[3];
      const int bits = op.winner_bits();
      int64_t wrong = 0;
      for (int64_t cell = 0; cell < cells[0] * cells[1] * cells[2]; ++cell)
        for (int64_t o = 0; o < c.out; ++o) {
          const double pooled = fast[0].at(cell * c.out + o);
          if (!(pooled > 0)) continue;
          int64_t place = 0;
          for (int bit = 0; bit < bits; ++bit)
            place |= int64_t(int(fast[1].at(cell * bytes + o / 16 * 2 * bits + 2 * bit + o % 16 / 8)) >> (o % 8) & 1)
                     << bit;
          const int64_t n = cell / (cells[1] * cells[2]),
                        i = cell / cells[2] % cells[1] * pool.height + place / pool.width,
                        j = cell % cells[2] * pool.width + place % pool.width;
          const int64_t at = ((n * y.shape()[1] + i) * y.shape()[2] + j) * c.out + o;
          wrong +=
              place >= pool.height * pool.width || std::abs(y.at(at) - pooled) > 0x1p-22 * (taps + 3) * sums.at(at);
        }
      CHECK_MESSAGE(wrong == 0, wrong << " winners of " << to_string(c.x) << " are not places of the largest value");

      const Tensor dpooled = random(cells, 4);
      check_twin(cpu_backend(), ops::ConvPoolBackward(c.window, pool, c.filter()), {in[0], fast[1], dpooled},
                 terms(double(cells[0] * cells[1] * cells[2])));
      check_twin(cpu_backend(), ops::ConvPoolBackwardInput(c.window, pool, c.x), {dpooled, in[1], fast[1]},
                 terms(double(c.height * c.width * c.out)));
    }
}

}  // namespace millpond::test
