#include <doctest/doctest.h>

#include <cmath>

#include "ops/dense_backward.h"
#include "ops/dense_update.h"
#include "ops/optimizer_step.h"
#include "ops/step_size.h"
#include "support/operators.h"

namespace millpond::test {

using backend::reference_backend;
using ops::Rule;

namespace {
const Rule kSgd{};
const Rule kMomentum{.kind = Rule::Kind::kMomentum, .momentum = 0.5f};
const Rule kNesterov{.kind = Rule::Kind::kMomentum, .nesterov = true, .momentum = 0.5f};
const Rule kAdam{.kind = Rule::Kind::kAdam};
const Rule kAdamW{.kind = Rule::Kind::kAdam, .weight_decay = 0.25f};
const Tensor kStep = values({2}, {0.5, 0.125});  // step, learning rate
}  // namespace

TEST_CASE("optimizer_step: one weight moves as Keras moves it") {
  const Tensor w = values({1}, {2}), g = values({1}, {4}), v = values({1}, {1});
  auto run = [&](const Rule& r, std::vector<Tensor> slots) {
    std::vector<Tensor> in{w};
    in.insert(in.end(), slots.begin(), slots.end());
    in.insert(in.end(), {g, kStep});
    std::vector<double> out;
    for (const Tensor& t : run_operator(reference_backend(), ops::OptimizerStep(r), in)) out.push_back(t.at(0));
    return out;
  };
  CHECK(run(kSgd, {}) == std::vector<double>{0});                    // 2 - 0.5 * 4
  CHECK(run(kMomentum, {v}) == std::vector<double>{0.5, -1.5});      // v = 0.5 - 2
  CHECK(run(kNesterov, {v}) == std::vector<double>{-0.75, -1.5});    // w = 2 + 0.5 * -1.5 - 2
  const auto adam = run(kAdam, {values({1}, {0}), values({1}, {0})});
  CHECK(adam[1] == doctest::Approx(0.4));
  CHECK(adam[2] == doctest::Approx(0.016));
  CHECK(adam[0] == doctest::Approx(2 - 0.5 * 0.4 / (std::sqrt(0.016) + 1e-7)));
  CHECK(run(kAdamW, {values({1}, {0}), values({1}, {0})})[0] == doctest::Approx(adam[0] - 0.125 * 0.25 * 2));
}

TEST_CASE("step_size: holds both of Adam's bias corrections, and the plain rate beside it") {
  auto run = [](const Rule& r, double done) { return list(run_operator(reference_backend(), ops::StepSize(r), {values({}, {0.25}), values({}, {done}, DType::kInt64)})[0]); };
  CHECK(run(kSgd, 9) == std::vector<double>{0.25, 0.25});
  CHECK(run(kAdam, 0)[0] == doctest::Approx(0.25 * std::sqrt(1 - 0.999) / (1 - 0.9)));
  CHECK(run(kAdam, 9)[0] == doctest::Approx(0.25 * std::sqrt(1 - std::pow(0.999, 10)) / (1 - std::pow(0.9, 10))));
}

TEST_CASE("Rule: prints what tells two rules apart") {
  CHECK(to_string(kSgd) == "sgd");
  CHECK(to_string(kNesterov) == "nesterov momentum=0.5");
  CHECK(to_string(kAdamW) == "adam beta1=0.9 beta2=0.999 epsilon=1e-07 weight_decay=0.25");
}

TEST_CASE("dense_update and dense_backward: are x^T dz, the sum of dz and dz kernel^T followed by optimizer_step") {
  const int64_t rows = 5, in = 3, out = 2;
  for (const Rule& rule : {kSgd, kMomentum, kNesterov, kAdam, kAdamW}) {
    const Tensor x = random({rows, in}, 1), dz = random({rows, out}, 2);
    std::vector<Tensor> kernel{random({in, out}, 3)}, bias{random({out}, 4)};
    for (int k = 0; k < rule.slots(); ++k) kernel.push_back(random({in, out}, 5, DType::kFloat32, 0, 1)), bias.push_back(random({out}, 6, DType::kFloat32, 0, 1));
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
      parameter.push_back(values(parameter[0].shape(), g)), parameter.push_back(kStep);
      return run_operator(reference_backend(), ops::OptimizerStep(rule), parameter);
    };
    std::vector<Tensor> wanted = step(kernel, dkernel), b = step(bias, dbias);
    wanted.insert(wanted.end(), b.begin(), b.end());
    std::vector<Tensor> operands{x, dz, kStep};
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
  CHECK(refusal_of(ops::OptimizerStep(kSgd), {type({2}), type({3}), type({2})}) == "optimizer_step: the gradient is [3], but [2] is needed; give the gradient the shape [2]");
}

}  // namespace millpond::test
