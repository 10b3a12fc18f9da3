#include <doctest/doctest.h>

#include "ops/dense_backward.h"
#include "ops/dense_update.h"
#include "ops/optimizer_step.h"
#include "ops/step_size.h"
#include "support/operators.h"

namespace millpond::test {

using backend::cpu_backend;
using ops::Rule;

namespace {
const Rule kRules[] = {
    {},
    {.weight_decay = 0.1f},
    {.kind = Rule::Kind::kMomentum, .momentum = 0.9f},
    {.kind = Rule::Kind::kMomentum, .nesterov = true, .momentum = 0.9f, .weight_decay = 0.1f},
    {.kind = Rule::Kind::kAdam},
    {.kind = Rule::Kind::kAdam, .weight_decay = 0.004f},
};
std::vector<Tensor> parameter(const Rule& rule, const Shape& shape, uint64_t seed) {
  std::vector<Tensor> p{random(shape, seed)};
  for (int k = 0; k < rule.slots(); ++k) p.push_back(random(shape, seed + 1 + uint64_t(k), DType::kFloat32, 0.1, 1));
  return p;
}
const Tensor kStep = values({2}, {0.01, 0.02});
}  // namespace

TEST_CASE("cpu optimizer_step: agrees with the reference") {
  for (const Rule& rule : kRules)
    for (int rank = 0; rank <= 2; ++rank)
      for (const Shape& s : awkward_shapes(rank)) {
        std::vector<Tensor> in = parameter(rule, s, 1);
        in.push_back(random(s, 9)), in.push_back(kStep);
        check_twin(cpu_backend(), ops::OptimizerStep(rule), in, scale(4));  // each value is the end of at most eight roundings, half an ulp each
      }
}

TEST_CASE("cpu step_size: agrees with the reference, early and late") {
  for (const Rule& rule : kRules)
    for (double done : {0.0, 1.0, 9.0, 1000.0, 1e6, 1e12}) check_twin(cpu_backend(), ops::StepSize(rule), {values({}, {1e-3}), values({}, {done}, DType::kInt64)}, ulps(1));
}

TEST_CASE("cpu dense_update and dense_backward: agree with the reference") {
  for (const Rule& rule : kRules)
    for (bool bias : {false, true})
      for (const auto& [rows, in, out] : {std::tuple{1, 1, 1}, {8, 4, 8}, {32, 100, 64}, {7, 33, 17}, {64, 130, 1}, {33, 5, 129}, {0, 4, 3}}) {
        std::vector<Tensor> operands{random({rows, in}, 1), random({rows, out}, 2), kStep};
        for (const Tensor& t : parameter(rule, {in, out}, 3)) operands.push_back(t);
        if (bias)
          for (const Tensor& t : parameter(rule, {out}, 7)) operands.push_back(t);
        // a gradient of `rows` terms, each below 1, against values of the size of 1: the gradient's error enters with the
        // step (0.01, and at most 1 / sqrt(0.1) in Adam), squared in Adam's second slot
        check_twin(cpu_backend(), ops::DenseUpdate(rule, bias), operands, scale(4 + rows));
        check_twin(cpu_backend(), ops::DenseBackward(rule, bias), operands, scale(4 + rows + out));
        const ops::Expression relu{{ops::Extent::kFull, ops::Extent::kFull}, {{ops::Function::k_gate, 0, 1}}, {{2}}};
        operands.push_back(operands[0]);
        check_twin(cpu_backend(), ops::DenseBackward(rule, bias, relu), operands, scale(4 + rows + out));
      }
}

}  // namespace millpond::test
