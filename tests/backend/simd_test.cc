#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>

#include "backend/cpu/isa.h"

namespace millpond::backend::cpu {

namespace avx2 {
int lanes_of_tail(int64_t n);
}
namespace avx512 {
int lanes_of_tail(int64_t n);
}

TEST_CASE("simd: a tail of n values is the first n lanes, and all of them from a whole vector on") {
  for (const int64_t n : {0, 1, 7, 8, 9, 15, 16, 17, 255, 256, 257, 300, 1 << 16, 1 << 30}) {
    CAPTURE(n);
    if (isa() != Isa::kNone) CHECK(avx2::lanes_of_tail(n) == std::min<int64_t>(n, 8));
    if (isa() == Isa::kAvx512) CHECK(avx512::lanes_of_tail(n) == std::min<int64_t>(n, 16));
  }
}

}  // namespace millpond::backend::cpu
