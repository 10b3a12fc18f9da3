#include <doctest/doctest.h>

#include "backend/cpu/rule.h"
#include "ops/dense_backward.h"
#include "ops/dense_update.h"
#include "ops/optimizer_step.h"
#include "ops/step_size.h"
#include "support/operators.h"
#include "support/rules.h"

namespace millpond::test {

using backend::cpu_backend;
using ops::Rule;

namespace {
const Rule kWritten[] = {
    sgd_rule(),
    sgd_rule({.weight_decay = 0.1}),
    momentum_rule(0.9),
    momentum_rule(0.9, false, {.weight_decay = 0.1}),
    momentum_rule(0.9, true),
    momentum_rule(0.9, true, {.weight_decay = 0.1}),
    adam_rule(),
    adam_rule({.weight_decay = 0.004}),
    adam_rule({}, 0.9, 0.9),
};
const Rule kOthers[] = {
    odd_rule(),
    odd_rule({.weight_decay = 0.1, .clip_value = 0.5}),
    adam_rule({.clip_value = 0.25}),
    adam_rule({.scaled = true}),
    sgd_rule({.weight_decay = 0.1, .scaled = true}),
};
std::vector<Rule> all_rules() {
  std::vector<Rule> all(std::begin(kWritten), std::end(kWritten));
  all.insert(all.end(), std::begin(kOthers), std::end(kOthers));
  return all;
}
std::vector<Tensor> parameter(const Rule& rule, const Shape& shape, uint64_t seed) {
  std::vector<Tensor> p{random(shape, seed)};
  for (int k = 0; k < rule.slot_count(); ++k)
    p.push_back(random(shape, seed + 1 + uint64_t(k), DType::kFloat32, 0.1, 1));
  return p;
}
Tensor scalars_of(const Rule& rule) {
  std::vector<double> all;
  for (int i = 0; i < rule.scalar_count(); ++i) all.push_back(0.01 * (i + 1));
  return values({rule.scalar_count()}, all);
}
}  // namespace

TEST_CASE("cpu optimizer_step: agrees with the reference") {
  for (const Rule& rule : all_rules())
    for (int rank = 0; rank <= 2; ++rank)
      for (const Shape& s : awkward_shapes(rank)) {
        std::vector<Tensor> in = parameter(rule, s, 1);
        in.push_back(random(s, 9)), in.push_back(scalars_of(rule));
        check_twin(cpu_backend(), ops::OptimizerStep(rule), in,
                   scale(4));  // each value is the end of at most eight roundings, half an ulp each
      }
}

namespace {
std::vector<Tensor> step_operands(const Rule& rule, double done) {
  std::vector<Tensor> all{values({}, {1e-3}), values({}, {done}, DType::kInt64)};
  for (const Rule::Kept& k : rule.own) all.push_back(values({}, {k.initial}));
  return all;
}
}  // namespace

TEST_CASE("cpu rules: SGD, momentum and Adam are recognised by their formulas and no other is") {
  for (const Rule& rule : kWritten) CHECK_MESSAGE(backend::cpu::written(rule).has_value(), to_string(rule));
  for (const Rule& rule : kOthers) CHECK_MESSAGE(!backend::cpu::written(rule).has_value(), to_string(rule));
  // one constant apart: not Nesterov's
  ops::Formula f("nearly");
  const ops::Term w = f.weight(), v = f.slot("v"), along = f.learning_rate() * f.gradient();
  const ops::Term after = 0.9 * v - along;
  f.becomes(v, after);
  f.becomes(w, w + (0.8 * after - along));
  CHECK(!backend::cpu::written(f.rule()).has_value());
  const auto adam = backend::cpu::written(adam_rule({.weight_decay = 0.004}));
  REQUIRE(adam);
  CHECK(adam->constants.toward1 == float(1 - 0.9));
  CHECK(adam->constants.toward2 == float(1 - 0.999));
  CHECK(adam->constants.epsilon == 1e-7f);
  CHECK(adam->decay);
}

TEST_CASE("cpu rules: what is written out by hand does what its expression does") {
  for (const Rule& rule : kWritten)
    for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{1, 1}, {1, 1000}, {7, 33}, {16, 64}}) {
      const backend::cpu::PreparedRule hand(rule, rows, cols), expression(rule, rows, cols, false);
      REQUIRE(hand.by_hand());
      REQUIRE(!expression.by_hand());
      const Tensor g = random({rows, cols}, 9), scalars = scalars_of(rule);
      std::vector<std::byte> own(size_t(expression.own_bytes()) + 64);
      std::byte* const aligned = own.data() + (64 - reinterpret_cast<uintptr_t>(own.data()) % 64) % 64;
      std::vector<Tensor> results[2];
      for (const bool by_hand : {false, true}) {
        std::vector<Tensor>& p = results[by_hand] = parameter(rule, {rows, cols}, 1);
        float* at[1 + Rule::kMostSlots];
        for (size_t k = 0; k < p.size(); ++k) at[k] = p[k].values<float>().data();
        const backend::cpu::PreparedRule& prepared = by_hand ? hand : expression;
        prepared.pass(prepared.step(scalars.values<float>().data(), aligned), g.values<float>().data(), cols, at, 0,
                      cols, rows, cols);
      }
      for (size_t k = 0; k < results[0].size(); ++k)
        for (int64_t i = 0; i < rows * cols; ++i)
          CHECK(results[1][k].at(i) == doctest::Approx(results[0][k].at(i)).epsilon(1e-6));  // values of the size of 1
    }
}

TEST_CASE("cpu step_size: agrees with the reference, early and late") {
  for (const Rule& rule : all_rules())
    for (double done : {0.0, 1.0, 9.0, 1000.0, 1e6, 1e12})
      check_twin(cpu_backend(), ops::StepSize(rule), step_operands(rule, done), ulps(1));
}

TEST_CASE("cpu dense_update and dense_backward: agree with the reference") {
  for (const Rule& rule : all_rules())
    for (bool bias : {false, true})
      for (const auto& [rows, in, out] :
           {std::tuple{1, 1, 1}, {8, 4, 8}, {32, 100, 64}, {7, 33, 17}, {64, 130, 1}, {33, 5, 129}, {0, 4, 3}}) {
        std::vector<Tensor> operands{random({rows, in}, 1), random({rows, out}, 2), scalars_of(rule)};
        for (const Tensor& t : parameter(rule, {in, out}, 3)) operands.push_back(t);
        if (bias)
          for (const Tensor& t : parameter(rule, {out}, 7)) operands.push_back(t);
        // a gradient of `rows` terms, each below 1, against values of the size of 1: the gradient's error enters with
        // the step (0.01, and at most 1 / sqrt(0.1) in Adam), squared in Adam's second slot
        check_twin(cpu_backend(), ops::DenseUpdate(rule, bias), operands, scale(4 + rows));
        check_twin(cpu_backend(), ops::DenseBackward(rule, bias), operands, scale(4 + rows + out));
        const ops::Expression relu{{ops::Extent::kFull, ops::Extent::kFull}, {{ops::Function::k_gate, 0, 1}}, {{2}}};
        operands.push_back(operands[0]);
        check_twin(cpu_backend(), ops::DenseBackward(rule, bias, relu), operands, scale(4 + rows + out));
      }
}

}  // namespace millpond::test
