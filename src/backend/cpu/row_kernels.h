// Row kernels: softmax and its kin, layer normalisation, argmax, on rows of floats that lie one after the other.
#pragma once
#include <cstdint>

#include "backend/cpu/isa.h"
#include "backend/cpu/labels.h"

namespace millpond::backend::cpu {

struct RowKernels {
  /// y may be x.
  void (*softmax)(const float* x, float* y, int64_t rows, int64_t cols);
  /// loss = log(sum exp z) - z[label]
  void (*cross_entropy)(const float* z, Labels labels, float* loss, int64_t rows, int64_t cols);
  /// dz = (softmax(z) - one_hot(label)) dloss; dz may be z.
  void (*cross_entropy_backward)(const float* z, Labels labels, const float* dloss, float* dz, int64_t rows,
                                 int64_t cols);
  void (*layer_norm)(const float* x, const float* gamma, const float* beta, float* y, float* mean, float* rstd,
                     int64_t rows, int64_t cols, float epsilon);
  /// dgamma, dbeta: the sums of these rows. dx may be dy.
  void (*layer_norm_backward)(const float* x, const float* gamma, const float* mean, const float* rstd, const float* dy,
                              float* dx, float* dgamma, float* dbeta, int64_t rows, int64_t cols);
  void (*argmax)(const float* x, int32_t* index, int64_t rows, int64_t cols);
};

MP_ISA_TABLE(RowKernels, row_kernels)

}  // namespace millpond::backend::cpu
