// Reduce kernels: sums and largest values of rows and of columns. A NaN among the values is the largest.
#pragma once
#include "backend/cpu/folded.h"
#include "backend/cpu/isa.h"

namespace millpond::backend::cpu {

struct Reduction {
  /// One result for each row; sums are divided by `count`.
  void (*rows)(const float* x, int64_t rows, int64_t cols, float count, float* out);
  /// Of n values; sums in double.
  double (*all)(const float* x, int64_t n);
  /// acc[c] takes in column c of p.
  void (*columns)(const float* x, Folded p, float* acc);
  /// out[i] = all of x[k * ld + i], k < times in order, divided by `count`. out may be x when times is 1.
  void (*combine)(const float* x, int64_t ld, int64_t times, float count, float* out, int64_t n);
  void (*fill)(float* p, float value, int64_t n);
};

struct ReduceKernels {
  Reduction sum, max;
};

MP_ISA_TABLE(ReduceKernels, reduce_kernels)

}  // namespace millpond::backend::cpu
