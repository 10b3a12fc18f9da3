// Products of small matrices of any size, by loops that are compiled once: what a Gemm does where LIBXSMM is not there
// to generate code for its size.
#pragma once
#include "backend/cpu/gemm.h"
#include "backend/cpu/isa.h"

namespace millpond::backend::cpu {

struct GemmKernels {
  using Product = void (*)(const Gemm::Size& size, const float* a, const float* b, float* c);
  Product product;
  Product doubles, pairs;  // the operands are doubles; bfloat16 in pairs
};

MP_ISA_TABLE(GemmKernels, gemm_kernels)

}  // namespace millpond::backend::cpu
