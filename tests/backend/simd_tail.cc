// Compiled for each instruction set, as the kernels are; so without the test library.
#include "backend/cpu/simd.h"

namespace millpond::backend::cpu::MP_ISA {

/// How many lanes of a vector tail(n) reads.
int lanes_of_tail(int64_t n) {
  float ones[kLanes];
  for (float& one : ones) one = 1;
  return int(sum(load(ones, tail(n))));
}

}  // namespace millpond::backend::cpu::MP_ISA
