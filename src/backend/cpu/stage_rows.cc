#include "backend/cpu/stage_rows.h"

#include <cmath>
#include <cstring>

#include "backend/cpu/stage_kernels.h"

namespace millpond::backend::cpu {

bool stage_rows(const StageRows& s, int64_t begin, int64_t end) {
  if (isa() != Isa::kNone) return stage_kernels().rows(s, begin, end);
  bool finite = true;
  for (int64_t r = begin; r < end; ++r) {
    const float* x = s.from + (s.index ? int64_t(s.index[r]) : s.first + r) * s.width;
    std::memcpy(s.to + r * s.width, x, size_t(s.width) * sizeof(float));
    for (int64_t i = 0; i < s.width; ++i) finite &= std::isfinite(x[i]);
  }
  return finite;
}

}  // namespace millpond::backend::cpu
