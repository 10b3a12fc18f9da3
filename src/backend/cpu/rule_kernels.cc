#include "backend/cpu/rule_kernels.h"

#include "backend/cpu/rule_simd.h"

namespace millpond::backend::cpu::MP_ISA {
namespace {

template <int kind, bool nesterov, bool decay>
void pass(const RuleStep& s, const float* g, int64_t ldg, float* const* parameter, int64_t first, int64_t ld,
          int64_t rows, int64_t cols) {
  const RuleOnVector<kind, nesterov, decay> rule(s);
  float* const w = parameter[0] + first;
  float* const slot0 = kind > 0 ? parameter[1] + first : nullptr;
  float* const slot1 = kind > 1 ? parameter[2] + first : nullptr;
  if (ldg == cols && ld == cols) cols *= rows, rows = rows > 0;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t at = r * ld;
    each_vector(cols, [&](int64_t i, auto m) {
      rule(load(g + r * ldg + i, m), w + at + i, kind > 0 ? slot0 + at + i : nullptr,
           kind > 1 ? slot1 + at + i : nullptr, m);
    });
  }
}

RulePass choose(WrittenRule kind, bool nesterov, bool decay) {
  switch (int(kind)) {
    case 0:
      return decay ? pass<0, false, true> : pass<0, false, false>;
    case 1:
      if (nesterov) return decay ? pass<1, true, true> : pass<1, true, false>;
      return decay ? pass<1, false, true> : pass<1, false, false>;
    default:
      return decay ? pass<2, false, true> : pass<2, false, false>;
  }
}

}  // namespace

const RuleKernels rule_kernels = {choose};

}  // namespace millpond::backend::cpu::MP_ISA
