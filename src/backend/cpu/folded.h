// Folded: some rows and columns of a matrix. Rows of few columns are folded: `fold` rows that lie one after the other
// are seen as one wide row of fold * cols columns, whose sums are added at the end, so that vectors are full.
#pragma once
#include <cstdint>

namespace millpond::backend::cpu {

struct Folded {
  int64_t rows = 0, cols = 0, stride = 0;  // stride: floats from row to row
  int64_t fold = 1;                        // more than 1 only where stride == cols
};

inline constexpr int64_t kMaxFolded = 512;  // columns of a folded row at most

/// How many rows to fold: the number near 64 columns that fills vectors of 16 best.
constexpr int64_t best_fold(int64_t rows, int64_t cols) {
  if (cols >= 64 || cols == 0) return 1;
  const int64_t least = (64 + cols - 1) / cols;
  if (rows < 4 * least) return 1;
  int64_t best = least;
  for (int64_t f = least; f <= 4 * least && f * cols <= kMaxFolded; ++f) {
    const int64_t width = f * cols, old = best * cols;
    if (width * ((old + 15) / 16) > old * ((width + 15) / 16)) best = f;
  }
  return best;
}

}  // namespace millpond::backend::cpu
