// What the kernels that update weights share: a rule made ready, and where a parameter with its slots lies.
#pragma once
#include <cstring>

#include "backend/cpu/rule_kernels.h"
#include "backend/kernel.h"
#include "ops/rule.h"

namespace millpond::backend::cpu {

class PreparedRule {
 public:
  explicit PreparedRule(const ops::Rule& r)
      : pass(rule_kernels().pass(int(r.kind), r.nesterov, r.weight_decay != 0)), slots_(r.slots()), rest_{0, r.weight_decay, r.momentum, 1 - r.beta1, 1 - r.beta2, r.epsilon} {}

  const RulePass pass;
  int slots() const { return slots_; }
  RuleStep step(const float* step_size) const {
    RuleStep s = rest_;
    s.step = step_size[0];
    s.decay *= step_size[1];
    return s;
  }

 private:
  int slots_;
  RuleStep rest_;
};

/// Weight and slots from element `begin`: outputs `output` and up, which are the bytes of the operands `input` and up. (A test may have
/// given them bytes of their own: then elements [begin, end) are copied first.)
struct Parameter {
  Parameter(const Arguments& a, int slots, int input, int output, int64_t begin, int64_t end) {
    float* p[3] = {nullptr, nullptr, nullptr};
    for (int k = 0; k <= slots; ++k) {
      p[k] = a.output<float>(output + k) + begin;
      const float* from = a.input<float>(input + k) + begin;
      if (from != p[k]) [[unlikely]] std::memcpy(p[k], from, size_t(end - begin) * sizeof(float));
    }
    weight = p[0], slot0 = p[1], slot1 = p[2];
  }
  float *weight, *slot0, *slot1;
};

}  // namespace millpond::backend::cpu
