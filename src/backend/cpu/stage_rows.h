// stage_rows: rows of a float array, chosen by number, copied one below the other, and looked at for NaN and infinity
// on the way: one pass over memory. The inner loop of staging a batch. Memory: none.
#pragma once
#include <cstdint>

namespace millpond::backend::cpu {

struct StageRows {
  const float* from = nullptr;
  float* to = nullptr;
  const uint32_t* index = nullptr;  // null: rows first, first + 1, ...
  int64_t first = 0;
  int64_t width = 0;
};

/// Copies rows [begin, end) of the batch; true when all their values are finite.
bool stage_rows(const StageRows& s, int64_t begin, int64_t end);

}  // namespace millpond::backend::cpu
