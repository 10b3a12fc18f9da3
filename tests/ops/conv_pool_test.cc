#include <doctest/doctest.h>

#include "ops/all.h"
#include "ops/conv_pool.h"
#include "ops/conv_pool_backward.h"
#include "ops/conv_pool_backward_input.h"
#include "passes/passes.h"
#include "support/operators.h"

namespace millpond::test {

using backend::reference_backend;
using ops::Window;

namespace {
struct Case {
  Shape x, filter;
  Window window, pool;
};
const std::vector<Case> kCases = {
    {{2, 6, 7, 3}, {3, 3, 3, 5}, {.height = 3, .width = 3}, {.height = 2, .width = 2, .stride_h = 2, .stride_w = 2}},
    {{1, 9, 8, 2},
     {2, 3, 2, 18},
     {.height = 2, .width = 3, .stride_h = 2, .top = 1, .left = 1, .right = 1},
     {.height = 3, .width = 2, .stride_h = 3, .stride_w = 2}},
};
}  // namespace

TEST_CASE("conv_pool: is convolution, bias, relu and max-pool, and its backward theirs") {
  for (const Case& c : kCases) {
    const std::vector<Tensor> in{random(c.x, 1), random(c.filter, 2), random({c.filter[3]}, 3)};
    graph::Graph g;
    graph::Builder b(g);
    std::vector<Value> x;
    for (const Tensor& t : in) x.push_back(b.input("x", {t.dtype(), t.shape()}));
    const Value pooled =
        ops::max_pool2d(b, ops::relu(b, ops::add(b, ops::conv2d(b, x[0], x[1], c.window), x[2])), c.pool);
    const Tensor dpooled = random(pooled.shape(), 4);
    const Value loss = ops::sum(b, ops::multiply(b, pooled, b.constant(dpooled)));
    const auto grads = passes::gradients(b, loss, std::vector{x[0], x[1], x[2]});
    const auto wanted = evaluate(g, in, {pooled, grads[0], grads[1], grads[2]});

    const auto forward = run_operator(reference_backend(), ops::ConvPool(c.window, c.pool), in);
    const Tensor gated =
        run_operator(reference_backend(), ops::Binary(ops::Function::k_gate), {dpooled, forward[0]})[0];
    const auto backward = run_operator(reference_backend(), ops::ConvPoolBackward(c.window, c.pool, c.filter),
                                       {in[0], forward[1], gated});
    const Tensor dx = run_operator(reference_backend(), ops::ConvPoolBackwardInput(c.window, c.pool, c.x),
                                   {gated, in[1], forward[1]})[0];
    auto near = [](const Tensor& p, const Tensor& q) {
      REQUIRE(p.shape() == q.shape());
      for (int64_t i = 0; i < p.size(); ++i) CHECK(p.at(i) == doctest::Approx(q.at(i)).epsilon(1e-5));
    };
    near(forward[0], wanted[0]);
    near(dx, wanted[1]);
    near(backward[0], wanted[2]);
    near(backward[1], wanted[3]);
  }
}

TEST_CASE("conv_pool: its backward operators agree with central differences in float64") {
  for (const Case& c : kCases) {
    const DType f64 = DType::kFloat64;
    const std::vector<Tensor> in{random(c.x, 1, f64), random(c.filter, 2, f64), random({c.filter[3]}, 3, f64)};
    const ops::ConvPool op(c.window, c.pool);
    const auto forward = run_operator(reference_backend(), op, in);
    const Tensor dpooled = random(forward[0].shape(), 4, f64);
    const Tensor gated =
        run_operator(reference_backend(), ops::Binary(ops::Function::k_gate), {dpooled, forward[0]})[0];
    std::vector<Tensor> grads = run_operator(reference_backend(), ops::ConvPoolBackwardInput(c.window, c.pool, c.x),
                                             {gated, in[1], forward[1]});
    for (Tensor& t : run_operator(reference_backend(), ops::ConvPoolBackward(c.window, c.pool, c.filter),
                                  {in[0], forward[1], gated}))
      grads.push_back(t);
    // Pooled values are linear in each operand as long as no winner changes; none does within 1e-6 of these operands.
    const auto loss = [&](size_t which, int64_t k, double step) {
      std::vector<Tensor> moved = in;
      moved[which] = in[which].astype(f64);
      moved[which].values<double>()[size_t(k)] += step;
      const Tensor pooled = run_operator(reference_backend(), op, moved)[0];
      double sum = 0;
      for (int64_t i = 0; i < pooled.size(); ++i) sum += pooled.at(i) * dpooled.at(i);
      return sum;
    };
    for (size_t which = 0; which < 3; ++which)
      for (int64_t k = 0; k < in[which].size(); k += 1 + in[which].size() / 40)
        CHECK(grads[which].at(k) ==
              doctest::Approx((loss(which, k, 1e-6) - loss(which, k, -1e-6)) / 2e-6).epsilon(1e-6));
  }
}

TEST_CASE("conv_pool: winners take two bits a value for a pool of 2 x 2, sixteen channels to a mask") {
  const ops::ConvPool op({.height = 3, .width = 3}, kCases[0].pool);
  CHECK(op.winner_bits() == 2);
  CHECK(op.winner_bytes(16) == 4);
  CHECK(op.winner_bytes(17) == 8);
  // one cell, one channel, the largest value at place 2 (second row, first column): bit 1 set in the second mask
  const auto r = run_operator(reference_backend(), ops::ConvPool({}, kCases[0].pool),
                              {values({1, 2, 2, 1}, {1, 2, 9, 4}), values({1, 1, 1, 1}, {1}), values({1}, {0})});
  CHECK(list(r[1]) == std::vector<double>{0, 0, 1, 0});
}

TEST_CASE("conv_pool: a pool that overlaps is refused") {
  const ops::ConvPool op({.height = 1, .width = 1}, {.height = 2, .width = 2});
  CHECK(refusal_of(op, {type({1, 4, 4, 1}), type({1, 1, 1, 1}), type({1})}) ==
        "conv_pool: a pool 2x2; only pools that neither overlap nor pad are fused");
}

TEST_CASE("conv_pool_backward_input: winners and dpooled must be those of the forward pass") {
  const ops::ConvPoolBackwardInput op({}, kCases[0].pool, {1, 4, 4, 1});
  const TensorType filter = type({1, 1, 1, 3});
  CHECK(refusal_of(op, {type({1, 2, 2, 3}), filter, type({1, 2, 2, 4}, DType::kUInt8)}) == "");
  CHECK(refusal_of(op, {type({1, 2, 1, 3}), filter, type({1, 2, 2, 4}, DType::kUInt8)}).find("dpooled") !=
        std::string::npos);
  CHECK(refusal_of(op, {type({1, 2, 2, 3}), filter, type({1, 2, 2, 2}, DType::kUInt8)}).find("winners") !=
        std::string::npos);
}

}  // namespace millpond::test
