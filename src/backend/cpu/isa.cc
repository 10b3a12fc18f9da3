#include "backend/cpu/isa.h"

#include <cpuid.h>

#include <cstdlib>
#include <string_view>

namespace millpond::backend::cpu {

namespace {
// clang 14 does not know "f16c" as a name.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}
}  // namespace

Isa isa() {
  static const Isa found = [] {
    const char* wish = std::getenv("MILLPOND_ISA");
    const std::string_view w = wish ? wish : "";
    __builtin_cpu_init();
    if (w == "none" || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c() ||
        !__builtin_cpu_supports("bmi2"))
      return Isa::kNone;
    const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512cd");
    return wide && w != "avx2" ? Isa::kAvx512 : Isa::kAvx2;
  }();
  return found;
}

}  // namespace millpond::backend::cpu
