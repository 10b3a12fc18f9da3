// Which instruction set the kernels of this process use. Found once; files of mp_cpu_isa_sources (sources.cmake) are
// compiled for each, and offer their functions as a table of pointers; a kernel takes its pointers when it is made.
#pragma once

namespace millpond::backend::cpu {

enum class Isa {
  kNone,    // too old a processor: every kernel is the reference's
  kAvx2,    // with FMA
  kAvx512,  // F, BW, DQ, VL
};

/// The processor's best, or less when the environment says MILLPOND_ISA=avx2 or none (tests, comparison).
Isa isa();

}  // namespace millpond::backend::cpu

/// Declares `const Type& name()`: the table of the chosen instruction set. Both are defined in one source file of
/// mp_cpu_isa_sources as `const Type name = {...}` in namespace MP_ISA.
#define MP_ISA_TABLE(Type, name) \
  namespace avx2 {               \
  extern const Type name;        \
  }                              \
  namespace avx512 {             \
  extern const Type name;        \
  }                              \
  inline const Type& name() { return isa() == Isa::kAvx512 ? avx512::name : avx2::name; }
