#include "backend/cpu/stage_kernels.h"

#include "backend/cpu/simd.h"

namespace millpond::backend::cpu::MP_ISA {
namespace {

// x - x is 0 for what is finite and NaN otherwise, and NaN stays in a sum.
bool rows(const StageRows& s, int64_t begin, int64_t end) {
  V bad = zero();
  const int64_t n = s.width;
  for (int64_t r = begin; r < end; ++r) {
    const float* x = s.from + (s.index ? int64_t(s.index[r]) : s.first + r) * n;
    float* y = s.to + r * n;
    each_vector(n, [&](int64_t i, auto part) {
      const V v = load(x + i, part);
      store(y + i, v, part);
      bad = add(bad, sub(v, v));
    });
  }
  return !any(unordered(bad, bad));
}

}  // namespace

const StageKernels stage_kernels = {rows};

}  // namespace millpond::backend::cpu::MP_ISA
