// Sums, largest values, additions and transposes of numbers other than float32 (and of the half types): the loops
// behind reduce, scatter_add and transpose. Values are brought to lanes (typed_steps.h) a chunk at a time, so that
// there are loops for five numbers, not for thirteen dtypes.
#pragma once
#include <cstdint>

#include "backend/cpu/isa.h"
#include "backend/cpu/stored.h"

namespace millpond::backend::cpu {

/// What lanes are gathered in: double for floating ones, int64_t and uint64_t for whole numbers, whose sums wrap.
struct LaneReduction {
  /// acc takes in n values.
  void (*all)(const void* x, int64_t n, void* acc);
  /// acc[c] takes in x[c], c < n.
  void (*each)(const void* x, int64_t n, void* acc);
};

struct TypedRows {
  LaneReduction sum[5], max[5];  // by Lanes
  /// n values from memory to lanes; null where both are the same.
  void (*(*widen)(Stored type))(const void* from, void* to, int64_t n);
  /// to[i] = to[i] + from[i], rounded or wrapped.
  void (*(*add)(Stored type))(const void* from, void* to, int64_t n);
  /// y[j * y_step + i] = x[i * x_step + j] for i < rows, j < cols; values of 1, 2, 4 or 8 bytes.
  void (*(*transpose)(int bytes))(const void* x, int64_t x_step, void* y, int64_t y_step, int64_t rows, int64_t cols);
  /// out[k * n + j] = x[k * row + j * col] in lanes, k < rows, j < n: an operand of a product, laid together. Of
  /// kFloat64, kBFloat16 and kFloat16.
  void (*(*pack)(Stored type))(const void* x, int64_t row, int64_t col, int64_t rows, int64_t n, void* out);
  /// The same of bfloat16 as it is; `pairs`: two rows interleaved, [rows / 2, n, 2]. An odd row or column is filled up
  /// with zeros.
  void (*pack_rows)(const uint16_t* x, int64_t row, int64_t col, int64_t rows, int64_t n, uint16_t* out);
  void (*pack_pairs)(const uint16_t* x, int64_t row, int64_t col, int64_t rows, int64_t n, uint16_t* out);
};

MP_ISA_TABLE(TypedRows, typed_rows)

}  // namespace millpond::backend::cpu
