#include "backend/cpu/isa.h"

#include <cstdlib>
#include <string_view>

namespace millpond::backend::cpu {

Isa isa() {
  static const Isa found = [] {
    const char* wish = std::getenv("MILLPOND_ISA");
    const std::string_view w = wish ? wish : "";
    __builtin_cpu_init();
    if (w == "none" || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c") || !__builtin_cpu_supports("bmi2")) return Isa::kNone;
    const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
    return wide && w != "avx2" ? Isa::kAvx512 : Isa::kAvx2;
  }();
  return found;
}

}  // namespace millpond::backend::cpu
