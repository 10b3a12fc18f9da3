// An optimiser's rule (ops/rule.h) on blocks of weights: one pass over gradient, weight and slots. SGD, momentum and
// Adam are written out here for vectors; every other rule is run as the expression that it is (rule.h).
#pragma once
#include <cstddef>
#include <cstdint>

#include "backend/cpu/isa.h"

namespace millpond::backend::cpu {

class ExpressionKernel;

/// What a rule needs in a step.
struct RuleStep {
  // written out: ready for vectors
  float step, decay;  // decay: learning rate times weight decay
  float momentum;
  float toward1, toward2, epsilon;  // 1 - beta1, 1 - beta2
  // as an expression
  const ExpressionKernel* expression;
  const float* scalars;
  std::byte* own;           // scratch of the calling thread
  int state, scalar_count;  // tensors of one parameter: weight and slots
};

/// g [rows, cols] with rows ldg apart; weight and slots, parameter[0], [1], ..., from element `at` with rows ld apart.
using RulePass = void (*)(const RuleStep& s, const float* g, int64_t ldg, float* const* parameter, int64_t at,
                          int64_t ld, int64_t rows, int64_t cols);

enum class WrittenRule : uint8_t { kSgd, kMomentum, kAdam };  // in the order of their numbers of slots

struct RuleKernels {
  RulePass (*pass)(WrittenRule kind, bool nesterov, bool decay);
};
MP_ISA_TABLE(RuleKernels, rule_kernels)

}  // namespace millpond::backend::cpu
