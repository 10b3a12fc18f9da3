// Attention kernels: what is done to tiles of scores between the products. A tile is [keys][queries]: queries lie along
// vectors, so that the largest and the sum of a query's scores go down columns. `queries` is a multiple of 16; a tile
// that reaches past the last query holds harmless numbers there.
#pragma once
#include <cstdint>

#include "backend/cpu/isa.h"

namespace millpond::backend::cpu {

struct ScoreTile {
  int64_t keys = 0, queries = 0;
  int64_t first_key = 0, first_query = 0;
  bool causal = false;  // a key after its query has no score
};

struct AttentionKernels {
  /// y[c * queries + r] = scale x[r * width + c], zero for rows <= r < queries.
  void (*turn)(const float* x, int64_t rows, int64_t width, float scale, int64_t queries, float* y);
  /// Scores become exp(score - largest) with the largest so far; `sum` takes them in. Returns whether a largest has
  /// changed; what was summed before has then been multiplied with `factor`.
  bool (*soften)(float* scores, const ScoreTile& t, float* largest, float* sum, float* factor);
  /// Row r of x times factor[r].
  void (*scale_rows)(float* x, int64_t rows, int64_t width, const float* factor);
  /// y = x / sum, lse = largest + log(sum), for `rows` queries.
  void (*finish)(const float* x, int64_t rows, int64_t width, const float* largest, const float* sum, float* y,
                 float* lse);
  /// d[r] = sum over c of x[r, c] y[r, c]
  void (*dots)(const float* x, const float* y, int64_t rows, int64_t width, float* d);
  /// Scores become p = exp(score - lse), dp becomes p (dp - d) scale.
  void (*gradient)(float* scores, float* dp, const ScoreTile& t, const float* lse, const float* d, float scale);
};

MP_ISA_TABLE(AttentionKernels, attention_kernels)

}  // namespace millpond::backend::cpu
