// Copy kernels: bytes from one place to another, transposed tiles, rows by index. `stream`: past the caches, for
// results that the caches would not hold anyway.
#pragma once
#include <cstddef>
#include <cstdint>

#include "backend/cpu/isa.h"
#include "backend/cpu/labels.h"

namespace millpond::backend::cpu {

struct CopyKernels {
  /// `rows` runs of `bytes` bytes, `from_step` and `to_step` bytes apart.
  void (*copy)(const std::byte* from, int64_t from_step, std::byte* to, int64_t to_step, int64_t rows, int64_t bytes,
               bool stream);
  /// n floats; zeros of any type of four bytes are zeros.
  void (*fill)(float* to, float value, int64_t n, bool stream);
  void (*zero)(std::byte* to, int64_t bytes, bool stream);
  /// y[j * y_step + i] = x[i * x_step + j] for i < rows, j < cols; values of four bytes.
  void (*transpose)(const float* x, int64_t x_step, float* y, int64_t y_step, int64_t rows, int64_t cols, bool stream);
  /// The rows index[0..n) of a table [count, bytes].
  void (*gather)(const std::byte* table, int64_t count, int64_t bytes, Labels index, int64_t n, std::byte* to);
  /// Adds columns [first, last) of rows [n, width] to those of a table [count, width] that have their index and lie in
  /// [begin, end), in order.
  void (*scatter)(float* table, int64_t count, int64_t width, int64_t begin, int64_t end, int64_t first, int64_t last,
                  Labels index, const float* rows, int64_t n);
};

MP_ISA_TABLE(CopyKernels, copy_kernels)

}  // namespace millpond::backend::cpu
