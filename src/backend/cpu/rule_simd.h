// The rules that are written out (WrittenRule) on one vector; for files compiled for each instruction set. rule.cc has
// their formulas.
#pragma once
#include "backend/cpu/rule_kernels.h"
#include "backend/cpu/simd.h"

namespace millpond::backend::cpu::MP_ISA {

template <int kind, bool nesterov, bool kDecay>
struct RuleOnVector {
  V step, decay, momentum, toward1, toward2, epsilon;
  MP_INLINE explicit RuleOnVector(const RuleStep& s)
      : step(set(s.step)),
        decay(set(s.decay)),
        momentum(set(s.momentum)),
        toward1(set(s.toward1)),
        toward2(set(s.toward2)),
        epsilon(set(s.epsilon)) {}

  template <class M>
  MP_INLINE void operator()(V g, float* w, float* slot0, float* slot1, M m) const {
    V x = load(w, m);
    if constexpr (kDecay) x = fnma(decay, x, x);
    if constexpr (kind == 0) {
      x = fnma(step, g, x);
    } else if constexpr (kind == 1) {
      const V along = mul(step, g), v = fms(momentum, load(slot0, m), along);
      x = add(x, nesterov ? fms(momentum, v, along) : v);
      store(slot0, v, m);
    } else {
      V first = load(slot0, m), second = load(slot1, m);
      first = fma(sub(g, first), toward1, first);
      second = fma(fms(g, g, second), toward2, second);
      store(slot0, first, m);
      store(slot1, second, m);
      // reciprocal() wants finite numbers: an infinite second moment must give a step of 0. A NaN passes min.
      const V under = min(set(3e38f), add(sqrt(second), epsilon));
      x = fnma(step, mul(first, reciprocal(under)), x);
    }
    store(w, x, m);
  }
};

}  // namespace millpond::backend::cpu::MP_ISA
