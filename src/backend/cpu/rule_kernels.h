// An optimiser's rule (ops/rule.h) on blocks of weights: one pass over gradient, weight and slots.
#pragma once
#include <cstdint>

#include "backend/cpu/isa.h"

namespace millpond::backend::cpu {

/// What a rule needs in a step, ready for vectors.
struct RuleStep {
  float step, decay;  // decay: learning rate times weight decay
  float momentum;
  float toward1, toward2, epsilon;  // 1 - beta1, 1 - beta2
};

/// g [rows, cols] with rows ldg apart; weight and slots with rows ld apart. Unused slots may be null.
using RulePass = void (*)(const RuleStep& s, const float* g, int64_t ldg, float* w, float* slot0, float* slot1, int64_t ld, int64_t rows, int64_t cols);

struct RuleKernels {
  /// kind: ops::Rule::Kind
  RulePass (*pass)(int kind, bool nesterov, bool decay);
};
MP_ISA_TABLE(RuleKernels, rule_kernels)

}  // namespace millpond::backend::cpu
