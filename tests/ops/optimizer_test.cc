#include <doctest/doctest.h>

#include <cmath>

#include "ops/dense_backward.h"
#include "ops/dense_update.h"
#include "ops/optimizer_step.h"
#include "ops/step_size.h"
#include "support/operators.h"
#include "support/rules.h"

namespace millpond::test {

using backend::reference_backend;
using ops::Rule;

namespace {
const Rule kSgd = sgd_rule(), kMomentum = momentum_rule(0.5), kNesterov = momentum_rule(0.5, true), kAdam = adam_rule(),
           kAdamW = adam_rule({.weight_decay = 0.25}), kOdd = odd_rule();
// Scalars in the order in which the formulas want them.
Tensor scalars_of(const Rule& r) {
  std::vector<double> all;
  for (int i = 0; i < r.scalar_count(); ++i) all.push_back(i + 1 == r.scalar_count() ? 0.5 : 0.03125);
  return values({r.scalar_count()}, all);
}
}  // namespace

TEST_CASE("optimizer_step: one weight moves as Keras moves it") {
  const Tensor w = values({1}, {2}), g = values({1}, {4}), v = values({1}, {1});
  auto run = [&](const Rule& r, std::vector<Tensor> slots) {
    std::vector<Tensor> in{w};
    in.insert(in.end(), slots.begin(), slots.end());
    in.insert(in.end(), {g, scalars_of(r)});
    std::vector<double> out;
    for (const Tensor& t : run_operator(reference_backend(), ops::OptimizerStep(r), in)) out.push_back(t.at(0));
    return out;
  };
  CHECK(run(kSgd, {}) == std::vector<double>{0});                  // 2 - 0.5 * 4
  CHECK(run(kMomentum, {v}) == std::vector<double>{0.5, -1.5});    // v = 0.5 - 2
  CHECK(run(kNesterov, {v}) == std::vector<double>{-0.75, -1.5});  // w = 2 + 0.5 * -1.5 - 2
  const auto adam = run(kAdam, {values({1}, {0}), values({1}, {0})});
  CHECK(adam[1] == doctest::Approx(0.4));
  CHECK(adam[2] == doctest::Approx(0.016));
  CHECK(adam[0] == doctest::Approx(2 - 0.5 * 0.4 / (std::sqrt(0.016) + 1e-7)));
  CHECK(run(kAdamW, {values({1}, {0}), values({1}, {0})})[0] ==
        doctest::Approx(adam[0] - 0.03125 * 2));  // the decay's scalar comes first
}

TEST_CASE("optimizer_step: weight decay, scaling and clipping come before the optimiser's own formula") {
  auto weight = [](const Rule& r, std::vector<double> scalars) {
    return run_operator(reference_backend(), ops::OptimizerStep(r),
                        {values({1}, {2}), values({1}, {4}), values({int64_t(scalars.size())}, scalars)})[0]
        .at(0);
  };
  CHECK(weight(sgd_rule({.weight_decay = 0.5}), {0.25, 0.125}) == 2 - 0.25 * 2 - 0.125 * 4);
  CHECK(weight(sgd_rule({.clip_value = 3}), {0.125}) == 2 - 0.125 * 3);
  CHECK(weight(sgd_rule({.scaled = true}), {0.125, 0.5}) == 2 - 0.125 * 0.5 * 4);
  CHECK(weight(sgd_rule({.clip_value = 1, .scaled = true}), {0.125, 0.5}) == 2 - 0.125 * 1);
}

TEST_CASE("step_size: holds both of Adam's bias corrections, or the plain rate, or what the decay takes before it") {
  auto run = [](const Rule& r, double done) {
    return list(run_operator(reference_backend(), ops::StepSize(r),
                             {values({}, {0.25}), values({}, {done}, DType::kInt64)})[0]);
  };
  CHECK(run(kSgd, 9) == std::vector<double>{0.25});
  CHECK(run(sgd_rule({.weight_decay = 0.5}), 9) == std::vector<double>{0.125, 0.25});
  CHECK(run(sgd_rule({.scaled = true}), 9) == std::vector<double>{0.25});  // the scale is not its business
  CHECK(run(kAdam, 0)[0] == doctest::Approx(0.25 * std::sqrt(1 - 0.999) / (1 - 0.9)));
  CHECK(run(kAdam, 9)[0] == doctest::Approx(0.25 * std::sqrt(1 - std::pow(0.999, 10)) / (1 - std::pow(0.9, 10))));
}

TEST_CASE("step_size: a number of the rule's own goes on from step to step") {
  const auto out = run_operator(reference_backend(), ops::StepSize(kOdd),
                                {values({}, {0.25}), values({}, {1}, DType::kInt64), values({}, {2})});
  REQUIRE(out.size() == 2);
  CHECK(list(out[1]) == std::vector<double>{1.5});  // 2 (1 - 0.5^2)
  CHECK(list(out[0]) == std::vector<double>{0.25, 1.5});
}

TEST_CASE("Rule: prints its formula, which tells two rules apart") {
  CHECK(to_string(kSgd) == "sgd: r3 = multiply(r2.scalar, r0); r4 = subtract(r1, r3); -> r4");
  CHECK(to_string(kMomentum) != to_string(momentum_rule(0.25)));
  CHECK(kNesterov == momentum_rule(0.5, true));
  CHECK(kNesterov != kMomentum);
}

TEST_CASE("Formula: the order in which terms are written makes no difference") {
  ops::Formula f("sgd");
  const ops::Term g = f.gradient(), rate = f.learning_rate(), w = f.weight();
  const ops::Term unused = square(g) * 3;
  const ops::Term along = rate * g;
  f.becomes(w, w - along);
  static_cast<void>(unused);
  CHECK(f.rule() == kSgd);
}

TEST_CASE("dense_update and dense_backward: are x^T dz, the sum of dz and dz kernel^T followed by optimizer_step") {
  const int64_t rows = 5, in = 3, out = 2;
  for (const Rule& rule : {kSgd, kMomentum, kNesterov, kAdam, kAdamW, kOdd}) {
    const Tensor x = random({rows, in}, 1), dz = random({rows, out}, 2);
    std::vector<Tensor> kernel{random({in, out}, 3)}, bias{random({out}, 4)};
    for (int k = 0; k < rule.slot_count(); ++k)
      kernel.push_back(random({in, out}, 5, DType::kFloat32, 0, 1)),
          bias.push_back(random({out}, 6, DType::kFloat32, 0, 1));
    std::vector<double> dkernel(in * out, 0.0), dbias(out, 0.0), dx(rows * in, 0.0);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t o = 0; o < out; ++o) {
        dbias[o] += dz.at(r * out + o);
        for (int64_t i = 0; i < in; ++i) {
          dkernel[i * out + o] += x.at(r * in + i) * dz.at(r * out + o);
          dx[r * in + i] += kernel[0].at(i * out + o) * dz.at(r * out + o);
        }
      }
    auto step = [&](std::vector<Tensor> parameter, const std::vector<double>& g) {
      parameter.push_back(values(parameter[0].shape(), g)), parameter.push_back(scalars_of(rule));
      return run_operator(reference_backend(), ops::OptimizerStep(rule), parameter);
    };
    std::vector<Tensor> wanted = step(kernel, dkernel), b = step(bias, dbias);
    wanted.insert(wanted.end(), b.begin(), b.end());
    std::vector<Tensor> operands{x, dz, scalars_of(rule)};
    operands.insert(operands.end(), kernel.begin(), kernel.end());
    operands.insert(operands.end(), bias.begin(), bias.end());
    const auto update = run_operator(reference_backend(), ops::DenseUpdate(rule, true), operands);
    const auto backward = run_operator(reference_backend(), ops::DenseBackward(rule, true), operands);
    const auto over_x = run_operator(reference_backend(), ops::DenseBackward(rule, true), operands, {.overlap = 0});
    REQUIRE(update.size() == wanted.size());
    for (size_t k = 0; k < wanted.size(); ++k) {
      CHECK(list(update[k]) == list(wanted[k]));
      CHECK(list(backward[k]) == list(wanted[k]));
      CHECK(list(over_x[k]) == list(wanted[k]));
    }
    CHECK(list(backward.back()) == list(values({rows, in}, dx)));
    CHECK(list(over_x.back()) == list(backward.back()));
  }
}

TEST_CASE("optimizer_step: outputs are the operands' bytes, and a gradient of another shape is refused") {
  const auto facts = ops::OptimizerStep(kAdam).memory();
  REQUIRE(facts.in_place.size() == 3);
  CHECK(facts.in_place[2].input == 2);
  CHECK(ops::DenseUpdate(kMomentum, true).memory().in_place.size() == 4);
  CHECK(refusal_of(ops::OptimizerStep(kSgd), {type({2}), type({3}), type({1})}) ==
        "optimizer_step: the gradient is [3], but [2] is needed; give the gradient the shape [2]");
}

}  // namespace millpond::test
